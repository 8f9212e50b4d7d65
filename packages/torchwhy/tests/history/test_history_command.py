"""`torchwhy history` as a person and as CI runs it."""

import json
import re

import numpy as np
import pytest

from tests.command_line import run_here
from tests.difference.pairs import loop
from tests.history.runs_of_a_program import named, noisy, stored
from torchwhy.history.runs import read_runs
from torchwhy.history.store import add_runs, stored_runs

STORE = "torchwhy-history.sqlite"


@pytest.fixture
def runs(tmp_path):
    """Two traces and an answer of `torchwhy measure`."""
    loop([1000, 1010, 990, 1005, 995]).write(tmp_path / "a.json")
    loop([1250, 1260, 1240, 1255, 1245], gpu=False).write(tmp_path / "b.json")
    timed = {"schema": 1, "kind": "measurement", "torch": "2.13", "name": "x @ x", "times_s": [1e-3, 3e-3, 2e-3]}
    (tmp_path / "m.json").write_text(json.dumps(timed))
    return tmp_path


def filled(folder, **machines):
    """A store with 30 runs on each machine, from the 20th on slower by the factor given."""
    random = np.random.default_rng(0)
    for machine, factor in machines.items():
        values = noisy(random, 30, "normal")
        values[20:] *= factor
        add_runs(folder / STORE, stored(values, machine=machine))


def test_a_run_is_added_once(runs):
    ran = run_here("history", "add", "a.json", "m.json", "--commit", "abc", "--machine", "ci", folder=runs)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert re.search(r"a, on ci +5 +1\.00 ms +abc +added", ran.stdout)
    assert re.search(r"x @ x, on ci +3 +2\.00 ms +abc +added", ran.stdout)
    ran = run_here("history", "add", "a.json", "--commit", "abc", "--machine", "ci", "--format", "json", folder=runs)
    assert [one["added"] for one in json.loads(ran.stdout)["runs"]] == [False]
    found = stored_runs(runs / STORE)
    assert [(each.run.name, each.run.value, each.run.torch) for each in found] == [
        ("a", 1000.0, ""),
        ("x @ x", 2000.0, "2.13"),
    ]


def test_a_trace_has_the_steps_that_diff_compares(runs):
    (found,) = read_runs(runs / "a.json")
    assert found.samples == (1000.0, 1010.0, 990.0, 1005.0, 995.0)
    assert found.machine.endswith(", NVIDIA A100-SXM4-80GB")
    loop([9000, 1000, 1010, 990]).write(runs / "cold.json")
    assert read_runs(runs / "cold.json")[0].samples == (1000.0, 1010.0, 990.0)


def test_a_runs_folder_tells_its_machine_and_its_counts(runs):
    folder = runs / "train-2"
    folder.mkdir()
    (runs / "b.json").rename(folder / "trace.json")
    around = {"host": "node7", "versions": {"torch": "2.13.0"}}
    (folder / "environment.json").write_text(json.dumps(around))
    (folder / "counts.json").write_text(json.dumps({"schema": 1, "metrics": {"syncs": 3, "dispatches": None}}))
    (timed,) = read_runs(folder)
    assert (timed.name, timed.machine, timed.torch, timed.value) == ("train", "node7", "2.13.0", 1250.0)
    assert read_runs(folder / "trace.json")[0] == type(timed)(
        *{**vars(timed), "source": str(folder / "trace.json")}.values()
    )
    (syncs,) = read_runs(folder, "syncs")
    assert (syncs.name, syncs.metric, syncs.samples) == ("train", "syncs", (3.0,))
    ran = run_here("history", "add", "train-2", "--metric", "dispatches", folder=runs)
    assert ran.returncode == 2
    assert "--metric must be step or one of syncs in" in ran.stderr


def test_of_several_ranks_the_slowest_counts(runs):
    (runs / "job").mkdir()
    for rank, us in enumerate((1000, 1400, 1200)):
        loop([us] * 4, rank=rank).write(runs / "job" / f"rank{rank}.json")
    assert read_runs(runs / "job")[0].value == 1400


def test_a_comparison_has_a_run_for_each_statement(runs):
    parts = [{"name": name, "times_s": [time_s]} for name, time_s in (("a", 1.0), ("b", 2.0))]
    (runs / "c.json").write_text(json.dumps({"schema": 1, "kind": "comparison", "measurements": parts}))
    assert [(one.name, one.value) for one in read_runs(runs / "c.json")] == [("a", 1e6), ("b", 2e6)]


@pytest.mark.parametrize("times", [[], [-1.0], ["x"], None, [float("1e999")]])
def test_a_measurement_without_times_is_refused(runs, times):
    (runs / "c.json").write_text(json.dumps({"schema": 1, "kind": "measurement", "name": "a", "times_s": times}))
    ran = run_here("history", "add", "c.json", folder=runs)
    assert (ran.returncode, (runs / STORE).exists()) == (3, False)
    assert "c.json" in ran.stderr


def test_check_fails_where_a_series_got_slower(runs):
    filled(runs, steady=1.0, slower=1.05)
    ran = run_here("history", "check", folder=runs)
    assert (ran.returncode, ran.stderr) == (1, "")
    text = " ".join(ran.stdout.split())
    assert "1 of 2 series slower" in text
    assert re.search(r"train, on slower: (4\.[5-9]|5\.\d)% more \(\d\.\d% to \d\.\d%\) since 0014000000: ", text)
    assert "in 20 runs before" in text
    assert run_here("history", "check", "--machine", "steady", folder=runs).returncode == 0
    assert run_here("history", "check", "--fail-on-slower", "10", folder=runs).returncode == 0
    assert run_here("history", "check", "--since", named(20), folder=runs).returncode == 0


def test_check_answers_programs(runs):
    filled(runs, steady=1.0, slower=1.05)
    answer = json.loads(run_here("history", "check", "--format", "json", folder=runs).stdout)
    assert (answer["passed"], answer["failed"], answer["judged"]) == (False, 1, 2)
    slower, steady = answer["series"]
    assert (slower["kind"], slower["slower_since"], slower["runs"]) == ("slower", named(20), 30)
    assert (steady["kind"], steady["slower_since"], steady["changes"]) == ("no slowdown", None, [])
    assert slower["changes"][0]["low"] <= 1.05 <= slower["changes"][0]["high"]
    for form in ("junit", "sarif", "github", "markdown", "html", "agent"):
        assert run_here("history", "check", "--format", form, folder=runs).returncode == 1


def test_check_of_few_runs_fails_nothing_and_claims_nothing(runs):
    run_here("history", "add", "a.json", folder=runs)
    ran = run_here("history", "check", folder=runs)
    assert ran.returncode == 0
    assert "passed" not in ran.stdout.lower()
    assert "too few runs in each of 1 series" in ran.stdout
    answer = json.loads(run_here("history", "check", "--format", "json", folder=runs).stdout)
    assert (answer["passed"], answer["failed"], answer["judged"]) == (None, 0, 0)


def test_check_counts_only_judged_series_as_passed(runs):
    filled(runs, steady=1.0)
    run_here("history", "add", "a.json", folder=runs)
    text = " ".join(run_here("history", "check", folder=runs).stdout.split())
    assert "no slowdown in 1 series" in text
    assert "1 of 2 have too few runs to be judged" in text


def test_the_page_shows_each_series_and_fetches_nothing(runs):
    filled(runs, **{"steady": 1.0, "<b>slower</b>": 1.05})
    ran = run_here("history", "page", folder=runs)
    assert (ran.returncode, ran.stdout) == (0, "")
    text = (runs / "history.html").read_text()
    assert re.fullmatch(r"wrote history\.html, \d+ kB\n", ran.stderr)
    assert "default-src 'none'" in text
    assert "<b>slower" not in text
    assert text.count('<svg class="steps"') == 2
    assert text.count('class="part-computing" x=') == 60
    assert text.count('class="part-communication" x=') == 1  # the level after the slowdown
    assert text.index("on &lt;b&gt;slower") < text.index("on steady")
    assert not re.search(r"(src|href)=\"?(https?:)?//", text)


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("prune",), 2, "ACTION must be one of add, check, page, got 'prune'"),
        (("add",), 2, "torchwhy history add needs the runs to add"),
        (("check", "a.json"), 2, "torchwhy history check takes no RUN, got a.json"),
        (("check", "--fail-on-slower", "-1"), 2, "--fail-on-slower must be a percentage of 0 or more, got -1.0"),
        (("add", "m.json", "--name", ""), 2, "--name must not be empty"),
        (("check", "--format", "xml"), 2, "--format must be one of"),
        (("check",), 3, "torchwhy-history.sqlite does not exist; `torchwhy history add RUN` makes it"),
        (("check", "--store", "m.json"), 3, "file is not a database"),
        (("add", "m.json", "--store", "no/h.sqlite"), 3, "cannot open the history no/h.sqlite"),
        (("add", "nothing.json"), 3, "nothing.json"),
        (("add", "."), 3, "holds 3 traces, and neither they nor their names say that they are ranks"),
    ],
)
def test_misuse_is_said_in_a_line(runs, words, status, said):
    ran = run_here("history", *words, folder=runs)
    assert (ran.returncode, ran.stdout) == (status, "")
    assert said in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_a_page_that_cannot_be_written_is_named(runs):
    filled(runs, steady=1.0)
    ran = run_here("history", "page", "-o", "no/page.html", folder=runs)
    assert (ran.returncode, ran.stderr) == (3, "error: cannot read or write no/page.html: No such file or directory\n")


def test_a_series_that_is_not_there_is_said(runs):
    filled(runs, steady=1.0)
    ran = run_here("history", "check", "--name", "other", folder=runs)
    assert (ran.returncode, ran.stderr) == (2, "error: torchwhy-history.sqlite has no run of --name other\n")


def test_a_trace_without_steps_is_refused(tmp_path):
    loop([]).write(tmp_path / "empty.json")
    ran = run_here("history", "add", "empty.json", folder=tmp_path)
    assert ran.returncode in (2, 3)
    assert not (tmp_path / STORE).exists()
