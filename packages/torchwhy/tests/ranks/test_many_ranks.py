"""Jobs of many ranks: what is kept of a job whose reading was stopped, and what is said of hundreds of ranks."""

import csv
import pickle
import re
import signal
import subprocess
import sys
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest

from tests.command_line import run_here
from tests.ranks.jobs import rank_story, write_job
from torchwhy.cli import jobs as jobs_of_commands
from torchwhy.errors import ArgumentError, MissingPackageError
from torchwhy.loading import job as loading_job
from torchwhy.loading import kept, workers
from torchwhy.loading.job import load_job
from torchwhy.page import report_page
from torchwhy.page.report_page import job_page
from torchwhy.questions.opening import Recordings
from torchwhy.questions.tools import Tools
from torchwhy.report.job_report import Rank, describe_job, outliers_first

SCHEMA_PAGE = Path(__file__).parents[2] / "docs/report-schema.md"
SLOW = [300, 300, 300, 500]


@pytest.fixture
def folder(tmp_path):
    return write_job(tmp_path / "job", 4, compute=SLOW)


@pytest.fixture
def asked(monkeypatch):
    """The names of the traces that are read, rather than taken from what is kept."""
    names = []
    here = workers._here

    def read(path, thresholds):
        names.append(path.name)
        return here(path, thresholds)

    monkeypatch.setattr(workers, "_here", read)
    return names


def load(folder, **how):
    return load_job(folder, keep=True, workers=1, **how)


def plain(job):
    return msgspec.to_builtins(describe_job(job, job.diagnose()))


def summaries(folder):
    return sorted((folder / kept.FOLDER).glob("*"))


def test_what_a_killed_process_has_read_is_not_read_again(folder, asked):
    (folder / "rank9.json").write_text("{")
    program = (
        "import os, signal\nfrom torchwhy.loading.job import load_job\n"
        "def die(done, of):\n    if done == 2: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"load_job({str(folder)!r}, workers=2, keep=True, progress=die)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ran.returncode == -signal.SIGKILL
    known = len(summaries(folder))
    assert known in (1, 2)  # one of the two may be the damaged file
    job = load(folder)
    assert len(asked) == 5 - known
    assert list(job.unreadable) == ["rank9.json"]
    assert plain(job) == plain(load_job(folder, workers=1))


def test_a_job_that_was_read_is_not_read_again(folder, asked, monkeypatch):
    first = load(folder)
    assert len(asked) == 4
    monkeypatch.chdir(folder)
    again = load(".")
    assert len(asked) == 4
    assert plain(again)["ranks"] == plain(first)["ranks"]
    assert [summary.file for summary in again.summaries] == [f"rank{rank}.json" for rank in range(4)]


def test_a_changed_trace_is_read_again(folder, asked):
    load(folder)
    asked.clear()
    rank_story(2, 4, compute=[300, 300, 900, 500], steps=5).write(folder / "rank2.json")
    assert load(folder).ranks["compute_us"][2] == 5 * 900
    assert asked == ["rank2.json"]


@pytest.mark.parametrize("what", ["version", "makers", "thresholds"])
def test_another_torchwhy_or_other_thresholds_read_all_again(folder, asked, monkeypatch, what):
    load(folder)
    asked.clear()
    kept._torchwhy.cache_clear()
    how = {"thresholds": {"exposed-comm": {"share": 0.5}}} if what == "thresholds" else {}
    if not how:
        monkeypatch.setattr(kept, what, lambda *_: "99.0" if what == "version" else ["rules 2.0"])
    load(folder, **how)
    assert len(asked) == 4
    monkeypatch.undo()
    kept._torchwhy.cache_clear()


@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[:-9], lambda data: data[:50], pickle.dumps])
def test_a_damaged_summary_is_made_again(folder, asked, damage):
    load(folder)
    asked.clear()
    for path in summaries(folder):
        path.write_bytes(damage(path.read_bytes()))
    expected = plain(load_job(folder, keep=False, workers=1))
    asked.clear()
    assert plain(load(folder)) == expected
    assert len(asked) == 4


def test_odd_names_and_numbers_are_read_all_the_same(tmp_path, asked):
    (tmp_path / "job").mkdir()
    for rank, name in enumerate(("rank0\udcff.json", "rank1.json", "rank2.json")):
        info = {"rank": rank, "world_size": 2**70 if rank == 1 else 3}
        rank_story(rank, 3, compute=[300] * 3, distributedInfo=info).write(tmp_path / "job" / name)
    assert len(load(tmp_path / "job")) == len(load(tmp_path / "job")) == 3
    assert asked[3:] == ["rank1.json"]  # no file can hold the number


def test_where_nothing_can_be_written_a_job_is_read_all_the_same(folder):
    (folder / kept.FOLDER).write_text("")
    with pytest.warns(UserWarning, match=r"summaries of ranks are not kept, since .*\.torchwhy cannot be written"):
        assert len(load(folder)) == 4


def test_small_jobs_leave_no_files_and_a_server_never_does(folder, monkeypatch):
    load_job(folder)
    assert not summaries(folder)
    monkeypatch.setattr(loading_job, "SMALL", 0)
    Tools([folder]).call("explain", {"trace": str(folder)})
    assert not summaries(folder)
    recordings = Recordings()
    assert recordings.open(str(folder)) is recordings.open(str(folder))
    assert len(summaries(folder)) == 4


def test_the_memory_of_the_reading_process_does_not_grow_with_events(tmp_path):
    def peak(steps_apart):
        folder = tmp_path / f"job{steps_apart}"
        folder.mkdir()
        for rank in range(2):
            story = rank_story(rank, 2, compute=[3000, 3000], numbered=False)
            begin = min(event["ts"] for event in story.events if event.get("cat") == "kernel")
            for i in range(steps_apart):
                story.op("aten::item", begin + 0.2 * i, 0.1)
            story.write(folder / f"rank{rank}.json")
        tracemalloc.start()
        job = load_job(folder, workers=2)
        found = tracemalloc.get_traced_memory()[1], len(pickle.dumps(job.summaries))
        tracemalloc.stop()
        return found

    peak(1)  # modules are loaded
    few, many = peak(100), peak(10_000)
    assert all(there < 1.3 * here + 2000 for here, there in zip(few, many, strict=True))


def test_one_slow_rank_of_200_comes_first(tmp_path, monkeypatch):
    compute = [300] * 200
    compute[77] = 600
    job = load_job(write_job(tmp_path / "job", 200, compute=compute, steps=2))
    findings = job.diagnose()
    report = describe_job(job, findings)
    assert outliers_first(report.ranks)[0].rank == report.stragglers[0].rank == 77
    assert "Rank 77" in next(one.title for one in findings if one.slug == "last-rank")
    assert report.ranks[77].straggling == max(rank.straggling for rank in report.ranks) > 0.3
    computes = next(row for row in report.spread if row.name == "compute_us")
    assert (computes.least_us, computes.middle_us, computes.most_us, computes.most_rank) == (600, 600, 1200, 77)
    monkeypatch.setattr(report_page, "MOST_RANKS", 3)
    text = job_page(job, report)
    assert "The timeline shows 3 ranks of 200" in text
    assert re.search(r"Spread of 200 ranks.*Ranks</h\d>", text, re.S)
    drawn = set(re.findall(r'"(rank \d+)', text))
    assert len(drawn) <= 3


def test_every_column_of_the_table_is_described(folder, tmp_path):
    job = load_job(folder)
    assert tuple(job.ranks.columns) == Rank.__struct_fields__
    page = SCHEMA_PAGE.read_text()
    rows = page[page.index("### Ranks as a table") :]
    assert re.findall(r"^\| `(\w+)` \|", rows, re.M)[: len(Rank.__struct_fields__) + 1] == ["job", *job.ranks.columns]


@pytest.mark.parametrize("to", ["csv", "parquet"])
def test_the_table_of_ranks_is_a_file(folder, tmp_path, to):
    if to == "parquet":
        parquet = pytest.importorskip("pyarrow.parquet")
    ran = run_here("export", folder, "--to", to, "-o", f"ranks.{to}", "--format", "json", folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    expected = [{"job": "job", **row} for row in load_job(folder).ranks]
    if to == "parquet":
        assert parquet.read_table(tmp_path / "ranks.parquet").to_pylist() == expected
    else:
        with (tmp_path / "ranks.csv").open(newline="") as file:
            assert list(csv.DictReader(file)) == [{k: str(v) for k, v in row.items()} for row in expected]


@pytest.mark.parametrize(
    ("words", "status", "error"),
    [
        (
            ("--to", "csv", "--table", "ops"),
            2,
            "--table of several ranks must be one of ranks, collectives, stragglers",
        ),
        (("--to", "speedscope"), 2, "--to speedscope is about one trace, and job holds traces of several ranks"),
        (("--to", "csv", "--engine", "spark"), 2, "engine must be one of processes, ray, got 'spark'"),
    ],
)
def test_what_a_job_has_no_table_for_is_an_error(folder, words, status, error):
    ran = run_here("export", folder.name, *words, folder=folder.parent)
    assert (ran.returncode, error in " ".join(ran.stderr.split())) == (status, True)


def test_progress_and_ctrl_c_are_lines_of_stderr(folder, monkeypatch, capsys):
    monkeypatch.setattr(jobs_of_commands, "_EVERY_S", 0.0)
    jobs_of_commands.read_job(str(folder), jobs_of_commands.Reading(workers=1, keep=True))
    assert re.fullmatch(r"(?:\d of 4 traces read, \d+ s\n){4}", capsys.readouterr().err)

    def stopped(*_, progress, **__):
        progress(3, 1000)
        raise KeyboardInterrupt

    monkeypatch.setattr(loading_job, "load_job", stopped)
    with pytest.raises(KeyboardInterrupt):
        jobs_of_commands.read_job(str(folder), jobs_of_commands.Reading())
    assert "stopped: 3 of 1,000 traces were read; if summaries are kept" in capsys.readouterr().err


def test_ctrl_c_keeps_what_is_done(folder, asked):
    def stop(done, of):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load(folder, progress=stop)
    assert len(summaries(folder)) == 3


def test_an_engine_that_is_missing_is_named(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingPackageError, match="pip install ray"):
        load_job(folder, engine="ray")
    with pytest.raises(ArgumentError, match="workers must be >= 1, got 0"):
        load_job(folder, workers=0)


def test_tasks_of_ray_are_as_many_as_workers(folder, monkeypatch):
    """Ray's interface by a stand-in: how many tasks run at once, and a task that dies costs its file only."""
    running, most = [], []

    def remote(function, *arguments):
        running.append((function, arguments))
        most.append(len(running))
        return len(most) - 1

    calls = {}

    class RayError(Exception):
        pass

    def task(**_):
        def wrap(function):
            def start(*arguments):
                number = remote(function, *arguments)
                calls[number] = (function, arguments)
                return number

            return SimpleNamespace(remote=start)

        return wrap

    def wait(tasks, num_returns):
        running.pop()
        return tasks[:num_returns], tasks[num_returns:]

    def get(number):
        function, arguments = calls[number]
        if number == 1:
            raise RayError("the worker\ndied")
        return function(*arguments)

    stand_in = SimpleNamespace(
        is_initialized=lambda: True, remote=task, wait=wait, get=get, cluster_resources=lambda: {"CPU": 9.0},
        exceptions=SimpleNamespace(RayError=RayError),
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "ray", stand_in)
    job = load_job(folder, workers=2, engine="ray")
    assert max(most) == 2
    assert len(job) == 3
    [reason] = job.unreadable.values()
    assert "the task of Ray that read it failed: the worker died" in reason


@pytest.mark.many  # starting Ray takes 15 s
@pytest.mark.filterwarnings("ignore::DeprecationWarning:ray", "ignore::ResourceWarning", "ignore::FutureWarning")
def test_ray_finds_what_processes_find(folder):
    pytest.importorskip("ray")
    (folder / "rank9.json").write_text("{")
    assert plain(load_job(folder, engine="ray", workers=2)) == plain(load_job(folder, workers=1))
