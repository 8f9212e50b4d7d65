"""`torchwhy diff` as a person runs it."""

import json
import os

import pytest

from tests.command_line import run_apart, run_here
from tests.difference.pairs import loop
from tests.ranks.jobs import write_job

STEADY = [1000, 1010, 990, 1005, 995]


@pytest.fixture
def pair(tmp_path):
    loop(STEADY).write(tmp_path / "a.json")
    loop([1250, 1260, 1240, 1255, 1245]).write(tmp_path / "b.json")
    return tmp_path


def test_the_verdict_is_on_stdout(pair):
    ran = run_apart("diff", "a.json", "b.json", folder=pair)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "B is 1.25x slower (1.00 ms -> 1.25 ms per step, beyond the noise of" in ran.stdout


def test_folders_of_runs(pair):
    for name in "ab":
        (pair / f"run-{name}").mkdir()
        (pair / f"{name}.json").rename(pair / f"run-{name}" / "trace.json")
        for other in ("findings.json", "run.json", "counts.json"):
            (pair / f"run-{name}" / other).write_text("{}")
    ran = run_here("diff", "run-a", "run-b", folder=pair)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert f"run-a{os.sep}trace.json" in ran.stdout


def test_the_first_of_several_windows_is_compared(pair):
    (pair / "run").mkdir()
    loop(STEADY).write(pair / "run" / "trace.json")
    loop([9000] * 5).write(pair / "run" / "trace-2.json")
    ran = run_here("diff", "a.json", "run", folder=pair)
    assert (ran.returncode, ran.stderr) == (0, "comparing the first window, trace.json; also there: trace-2.json\n")
    assert "A and B are identical" in ran.stdout


@pytest.mark.parametrize(("percent", "status"), [(10, 1), (50, 0)])
def test_too_slow_is_status_1(pair, percent, status):
    assert run_here("diff", "a.json", "b.json", "--fail-on-slower", percent, folder=pair).returncode == status
    assert run_here("diff", "b.json", "a.json", "--fail-on-slower", percent, folder=pair).returncode == 0


def test_a_change_beyond_the_limit_and_within_the_noise_is_not_judged(pair):
    loop([900, 1000, 1100, 4000, 9000, 1000, 5000]).write(pair / "noisy.json")
    loop([1000, 3000, 3500, 900, 8000, 2500, 6000]).write(pair / "noisier.json")
    ran = run_here("diff", "noisy.json", "noisier.json", "--fail-on-slower", 10, folder=pair)
    assert ran.returncode == 0
    assert "skip" in ran.stdout
    assert "Cannot judge" in " ".join(ran.stdout.split())


def test_a_limit_that_cannot_be_judged_is_status_2(pair):
    loop([2000, 2000]).write(pair / "short.json")
    ran = run_here("diff", "a.json", "short.json", "--fail-on-slower", 5, folder=pair)
    assert ran.returncode == 2
    assert "noise can't be judged" in ran.stderr
    assert ran.stdout  # the comparison itself is printed nevertheless


def test_a_file_that_ends_in_html_is_the_page(pair):
    ran = run_here("diff", "a.json", "b.json", "-o", "diff.html", folder=pair)
    assert (ran.returncode, ran.stderr) == (0, "")
    page = (pair / "diff.html").read_text()
    assert 'id="stage-1"' in page
    assert "1.25x slower" in page


@pytest.mark.parametrize("form", ["json", "markdown"])
def test_other_formats_and_a_file(pair, form):
    ran = run_here("diff", "a.json", "b.json", "--format", form, "--output", "out.txt", folder=pair)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    text = (pair / "out.txt").read_text()
    assert json.loads(text)["schema"] == 1 if form == "json" else text.startswith("### Difference")


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (
            ["a.json", "b.json", "--format", "xml"],
            2,
            "--format must be one of text, json, markdown, html, sarif, junit, github, agent, got 'xml'",
        ),
        (["a.json", "b.json", "--fail-on-slower", "-3"], 2, "--fail-on-slower must be a percentage of 0 or more"),
        (["-", "-"], 2, "only one of A and B can come from stdin"),
        (["a.json"], 2, "Missing argument"),
        (["a.json", "missing.json"], 3, "missing.json"),
        (["a.json", "noise.json"], 3, "noise.json"),
        (["a.json", "empty"], 3, "empty has no traces in it"),
        (
            ["a.json", "ranks"],
            3,
            "ranks holds several traces and a.json is one; name the one to compare, such as "
            f"ranks{os.sep}rank0{os.sep}trace.json",
        ),
        (["a.json", "b.json", "-o", "nowhere/out.txt"], 3, "cannot write"),
    ],
)
def test_trouble_is_one_line(pair, arguments, status, message):
    (pair / "noise.json").write_bytes(b"\x93" * 500)
    (pair / "empty").mkdir()
    for rank in range(2):
        (pair / "ranks" / f"rank{rank}").mkdir(parents=True)
        loop(STEADY).write(pair / "ranks" / f"rank{rank}" / "trace.json")
    ran = run_here("diff", *arguments, folder=pair)
    assert ran.returncode == status
    assert message in ran.stderr
    assert "Traceback" not in ran.stderr
    if message != "Missing argument":
        assert ran.stderr.count("\n") == 1


def test_jobs_are_compared_rank_by_rank(tmp_path):
    write_job(tmp_path / "before", 3, compute=[300, 300, 300], steps=8)
    write_job(tmp_path / "after", 4, compute=[300, 600, 300, 310], steps=8)
    ran = run_here("diff", "before", "after", "--fail-on-slower", 10, folder=tmp_path)
    assert (ran.returncode, ran.stderr) == (1, "")
    assert "rank1.json" in ran.stdout.splitlines()[3]
    assert "B is 1.63x slower" in ran.stdout
    assert "Only on B: rank 3." in ran.stdout
    (row,) = [line.split() for line in ran.stdout.splitlines() if line.startswith("     1  ")]
    assert " ".join(row) == "1 479 us -> 779 us 300 us -> 600 us 100 us -> 100 us"
    found = json.loads(run_here("diff", "before", "after", "--format", "json", folder=tmp_path).stdout)
    assert (found["rank"], found["only_on_a"], found["only_on_b"]) == (1, [], [3])
    assert [pair["rank"] for pair in found["ranks"]] == [0, 1, 2]
    assert found["ranks"][0]["exposed_communication_us_per_step"] == [100, 400]
    assert found["difference"]["verdict"]["kind"] == "slower"


def test_traces_of_several_programs_are_no_job(tmp_path):
    for job in ("before", "after"):
        (tmp_path / job).mkdir()
        for name in ("one.json", "two.json"):
            loop(STEADY).write(tmp_path / job / name)
    ran = run_here("diff", "before", "after", folder=tmp_path)
    assert ran.returncode == 3
    assert ran.stderr == (
        "error: before holds 2 traces, and neither they nor their names say that they are ranks of one program: "
        f"name those to read, such as before{os.sep}one.json\n"
    )


@pytest.mark.parametrize("columns", [80, 140])
def test_lines_fit_into_the_terminal(pair, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    loop([1250] * 5, kernel_name="void at::native::a_kernel_with_a_long_name<" + "float, " * 30 + "int>").write(
        pair / "b.json"
    )
    shown = run_here("diff", "a.json", "b.json", folder=pair).stdout.splitlines()
    assert columns - 20 < max(map(len, shown)) <= columns
