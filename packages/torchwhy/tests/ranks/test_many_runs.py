"""Folders of many runs, each with ranks: which folders are runs, one table and one page of all, and buckets."""

import csv
import json
import os
import random
import re
import sys
import threading
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from tests.analysis.programs import computing
from tests.command_line import run_here
from tests.ranks.jobs import write_job
from torchwhy.errors import TraceError
from torchwhy.loading import runs as loading_runs
from torchwhy.loading import workers
from torchwhy.loading.job import load_job
from torchwhy.loading.runs import load_runs
from torchwhy.ranks.folder import find_runs
from torchwhy.trace.file.remote import path_of

NAMES = {"plain": "rank{}.json", "packed": "rank{}.json.gz", "folders": "rank{}/trace.json", "by info": "w{}.json"}


def write_run(folder, ranks, layout):
    """The traces of a run; returns its folder."""
    folder.mkdir(parents=True)
    if layout == "folders":
        for rank in range(ranks):
            (folder / f"rank{rank}").mkdir()
    if layout == "handler":
        return write_job(folder, ranks, name="host_{}.17000.pt.trace.json")
    return write_job(folder, ranks, name=NAMES[layout])


@pytest.mark.parametrize("seed", range(8))
def test_runs_are_found_whatever_their_layout(tmp_path, seed):
    pick = random.Random(seed)
    written = {}
    for number in range(pick.randint(2, 5)):
        parent = tmp_path / pick.choice(["", "monday", "monday/night"])
        ranks = pick.randint(2, 4)
        written[write_run(parent / f"run-{number}", ranks, pick.choice([*NAMES, "handler"]))] = ranks
    assert find_runs(tmp_path) == sorted(written)
    for folder, ranks in written.items():
        assert find_runs(folder) == [folder]
        assert len(load_job(folder, workers=1, keep=False)) == ranks


def test_ranks_on_several_hosts_are_one_run(tmp_path):
    write_job(tmp_path / "all", 4)
    for rank in range(4):
        host = tmp_path / "job" / f"host{rank // 2}"
        host.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"all/rank{rank}.json").rename(host / f"rank{rank}.json")
    assert find_runs(tmp_path / "job") == [tmp_path / "job"]
    assert len(load_job(tmp_path / "job", workers=1)) == 4


def test_an_unreadable_folder_is_an_error_and_an_empty_one_has_no_runs(tmp_path):
    assert find_runs(tmp_path) == []
    with pytest.raises(TraceError, match="does not exist"):
        find_runs(tmp_path / "missing")


@pytest.fixture
def runs(tmp_path):
    (tmp_path / "runs").mkdir()
    write_job(tmp_path / "runs/even", 2)
    write_job(tmp_path / "runs/slow", 3, compute=[300, 300, 700])
    (tmp_path / "runs/single").mkdir()
    computing().write(tmp_path / "runs/single/trace.json.gz")
    (tmp_path / "runs/broken").mkdir()
    (tmp_path / "runs/broken/trace.json").write_text("{")
    return tmp_path


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_one_table_has_the_rows_of_the_tables_of_each_run(runs):
    for table in ("ranks", "collectives", "stragglers"):
        ran = run_here("export", "runs", "--to", "csv", "--table", table, "-o", "all.csv", folder=runs)
        assert ran.returncode == 0
        assert re.fullmatch(r"left out: runs/broken has no readable trace: .+\n", ran.stderr)
        expected = []
        for run in ("even", "slow"):
            run_here("export", f"runs/{run}", "--to", "csv", "--table", table, "-o", "one.csv", folder=runs)
            expected += rows_of(runs / "one.csv")
        found = rows_of(runs / "all.csv")
        assert [row for row in found if row["job"] != "single"] == expected
        assert len(found) - len(expected) == (0 if table == "collectives" else 1)


def test_the_page_has_a_row_for_each_run_and_rank(runs):
    ran = run_here("report", "runs", "-o", "all.html", folder=runs)
    assert ran.returncode == 0
    page = (runs / "all.html").read_text()
    assert "3 runs, 6 ranks" in page
    assert "1 run could not be read: broken." in page
    names = re.findall(r"<tr>\s*<td[^>]*>(?:<[^>]+>)*(even|slow|single)<", page)
    assert sorted(names) == sorted(["even"] * (1 + 2) + ["slow"] * (1 + 3) + ["single"] * (1 + 1))


# --- which of them stand out -------------------------------------------------------------------------------------


def explained(folder, *options):
    ran = run_here("explain", "runs", *options, folder=folder)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def test_runs_that_stand_out_are_named_with_the_command_that_opens_the_first(tmp_path):
    (tmp_path / "runs").mkdir()
    for number in range(5):
        write_job(tmp_path / f"runs/even{number}", 2, compute=[300, 300 + number])
    write_job(tmp_path / "runs/late", 3, compute=[300, 300, 700])
    write_job(tmp_path / "runs/double", 2, compute=[650, 650])
    (tmp_path / "runs/broken").mkdir()
    (tmp_path / "runs/broken/trace.json").write_text("{")
    said = " ".join(explained(tmp_path).split())
    sentence = "late and double stand out; open one with `torchwhy explain runs/late`."
    assert "2 RUNS STAND OUT 6 of 7 runs are communication-bound. " + sentence in said
    assert "Left out: 1 run could not be read: broken." in said
    assert "waits for other ranks for 30% of the time, the median run 0%" in said
    assert "compute-bound, most runs are communication-bound" in said
    assert len(explained(tmp_path).splitlines()) <= 40
    for tokens in (200, 2000):
        assert sentence.replace("`", "'") in explained(tmp_path, "--format", "agent", "--tokens", f"{tokens}")
    apart = json.loads(explained(tmp_path, "--format", "json"))["apart"]
    assert [(one["name"], one["limit"]) for one in apart] == [
        ("late", "communication-bound"),
        ("double", "compute-bound"),
    ]
    opened = run_here("explain", "runs/late", folder=tmp_path)
    assert (opened.returncode, "3 ranks" in opened.stdout) == (0, True)


@pytest.mark.parametrize("seed", range(6))
def test_the_run_that_is_changed_stands_out_and_no_other(tmp_path, seed):
    pick = random.Random(seed)
    (tmp_path / "runs").mkdir()
    number, odd = pick.randint(3, 6), pick.choice([None, 0, 1, 2])
    for i in range(number):
        compute = 300 + pick.randint(0, 20) + (pick.choice([-200, 400]) if i == odd else 0)
        write_job(tmp_path / f"runs/run {i}", 2, compute=[compute, compute])
    apart = json.loads(explained(tmp_path, "--format", "json"))["apart"]
    assert [one["name"] for one in apart] == ([] if odd is None else [f"run {odd}"])
    said = " ".join(explained(tmp_path).split())
    assert f"`torchwhy explain 'runs/run {odd or 0}'`" in said


def test_runs_of_different_programs_do_not_all_stand_out(tmp_path):
    (tmp_path / "runs").mkdir()
    for i, compute in enumerate((100, 200, 400, 800, 1600, 3200)):
        write_job(tmp_path / f"runs/{i}", 2, compute=[compute, compute])
    assert len(json.loads(explained(tmp_path, "--format", "json"))["apart"]) < 4


def test_what_is_about_one_trace_is_refused(runs):
    for words, said in (
        (("export", "runs", "--to", "perfetto"), "runs holds several runs: name one of them"),
        (("report", "runs", "--steps", "1-2"), "--steps chooses steps of one trace, and runs holds several runs"),
        (("report", "runs", "--ranks"), "--ranks writes the pages of several ranks"),
        (("explain", "runs", "--steps", "1-2"), "--steps chooses steps of one trace, and runs holds several runs"),
        (("explain", "runs", "--table", "ops"), "--table is about one trace, and runs holds several runs"),
        (("explain", "runs", "--fail-on", "high"), "--fail-on is about the findings of one run, and runs holds"),
    ):
        ran = run_here(*words, folder=runs)
        assert (ran.returncode, ran.stdout) == (2, "")
        assert said in ran.stderr


def test_ray_that_does_not_start_is_an_error(runs, monkeypatch):
    def init(**_):
        raise RuntimeError("the node\ntimed out")

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(is_initialized=lambda: False, init=init))
    for source in ("runs", "runs/slow"):
        ran = run_here("export", source, "--to", "csv", "--engine", "ray", folder=runs)
        assert (ran.returncode, ran.stderr) == (3, "error: Ray cannot be started or reached: the node timed out\n")


@pytest.mark.many  # starting Ray takes 15 s
@pytest.mark.filterwarnings("ignore::DeprecationWarning:ray", "ignore::ResourceWarning", "ignore::FutureWarning")
def test_ray_reads_many_runs_as_processes_do(runs):
    pytest.importorskip("ray")
    for engine in ("processes", "ray"):
        words = ("export", "runs", "--to", "csv", "--engine", engine, "--workers", "2", "-o", f"{engine}.csv")
        ran = run_here(*words, folder=runs)
        assert (ran.returncode, ran.stderr.count("left out: runs/broken")) == (0, 1), ran.stderr
    assert len(rows_of(runs / "ray.csv")) == 6
    assert rows_of(runs / "ray.csv") == rows_of(runs / "processes.csv")


def test_runs_that_were_read_are_not_read_again(runs, monkeypatch):
    names = []
    here = workers._here
    monkeypatch.setattr(workers, "_here", lambda path, thresholds: names.append(path.name) or here(path, thresholds))
    found = {name: runs / "runs" / name for name in ("even", "slow")}
    reading = load_runs(found, workers=1, keep=True)
    next(reading)
    reading.close()  # as by Ctrl-C
    assert len(names) == 2
    assert [name for name, _ in load_runs(found, workers=1, keep=True)] == ["even", "slow"]
    assert len(names) == 5


@pytest.fixture
def folders(tmp_path):
    """Makes runs of given numbers of ranks; a run without ranks has a damaged trace."""

    def make(ranks):
        for i, number in enumerate(ranks):
            (tmp_path / f"runs/{i}").mkdir(parents=True)
            if number:
                write_job(tmp_path / f"runs/{i}", number, steps=2)
            else:
                (tmp_path / f"runs/{i}/trace.json").write_text("{")
        return {f"run {i}": tmp_path / f"runs/{i}" for i in range(len(ranks))}

    return make


@pytest.mark.parametrize("number", [2, 3])
def test_all_workers_read_at_once_where_each_run_has_one_trace(folders, monkeypatch, number):
    together = threading.Barrier(number, timeout=60)  # which breaks if fewer read

    def read(reader, path, thresholds):
        together.wait()
        return workers._here(path, thresholds)

    monkeypatch.setattr(workers._Reader, "read", read)
    found = folders([1] * (2 * number))
    assert [name for name, _ in load_runs(found, workers=number)] == list(found)


@pytest.mark.parametrize("seed", range(8))
def test_runs_come_in_order_and_whole_whenever_their_traces_are_done(folders, monkeypatch, seed):
    pick = random.Random(seed)
    found = folders([pick.randint(0, 3) for _ in range(6)])
    ahead, most = pick.choice([0, 1, 64]), pick.randint(1, 5)
    kept = pick.choice([True, False])

    class Shuffled(workers.Readers):
        """Traces are done in any order."""

        def __init__(self):
            super().__init__(most)
            self.paths = []

        def _start(self, path):
            self.paths.append(path)
            open_runs = {path.parent for path in self.paths}
            assert len(self.paths) <= most
            assert len(open_runs) <= ahead + 1

        def _next(self):
            path = self.paths.pop(pick.randrange(len(self.paths)))
            return path, workers._here(path, None)

    monkeypatch.setattr(loading_runs, "readers", lambda *_: nullcontext(Shuffled()))
    monkeypatch.setattr(loading_runs, "_AHEAD", ahead)
    said = []
    for _ in range(1 + kept):
        read = list(load_runs(found, keep=kept, progress=lambda *state: said.append(state)))
        assert [name for name, _ in read] == list(found)
        for (_, run), folder in zip(read, found.values(), strict=True):
            if isinstance(run, str):
                assert run.startswith(f"{folder} has no readable trace")
            else:
                assert [one.file for one in run.summaries] == [
                    one.file for one in load_job(folder, workers=1, keep=False).summaries
                ]
    assert said == [(done, 6) for done in range(1, 7)] * (1 + kept)


# --- buckets --------------------------------------------------------------------------------------------------


@pytest.fixture
def bucket(runs, monkeypatch):
    pytest.importorskip("upath")
    import fsspec

    memory = fsspec.filesystem("memory")
    if memory.exists("/bucket"):
        memory.rm("/bucket", recursive=True)
    memory.put(str(runs / "runs") + "/", "/bucket/runs", recursive=True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(runs / "cache"))
    return "memory://bucket/runs"


def test_a_bucket_is_read_as_a_folder_is(runs, bucket):
    for source, name in ((bucket, "far.csv"), ("runs", "near.csv")):
        words = ("export", source, "--to", "csv", "--workers", "1", "-o", name)
        assert run_here(*words, folder=runs).returncode == 0
    assert rows_of(runs / "far.csv") == rows_of(runs / "near.csv")
    one, far = (run_here("explain", f"{place}/slow", folder=runs).stdout for place in ("runs", bucket))
    assert one == far
    one, far = (run_here("explain", f"{place}/single/trace.json.gz", folder=runs).stdout for place in ("runs", bucket))
    assert one == far


def test_summaries_of_a_bucket_are_kept_in_the_cache_and_lapse_with_its_files(runs, bucket, monkeypatch):
    names = []
    here = workers._here
    monkeypatch.setattr(workers, "_here", lambda path, thresholds: names.append(str(path)) or here(path, thresholds))
    url = f"{bucket}/slow"
    first = load_job(url, workers=1, keep=True)
    assert sorted(names) == [f"{url}/rank{rank}.json" for rank in range(3)]
    again = load_job(url, workers=1, keep=True)
    assert len(names) == 3
    assert again.ranks.rows() == first.ranks.rows()
    file = path_of(f"{url}/rank1.json")
    file.write_bytes(file.read_bytes())
    load_job(url, workers=1, keep=True)
    assert names[3:] == [f"{url}/rank1.json"]


@pytest.mark.parametrize("command", ["explain", "report", "export", "diff", "cut", "memory", "merge", "timeline"])
def test_what_a_bucket_needs_is_named(tmp_path, command, monkeypatch):
    more = {"export": ["--to", "csv"], "diff": ["s3://no/such"], "cut": ["-o", "a.json"], "merge": ["-o", "a.json"]}
    monkeypatch.setitem(sys.modules, "upath.extensions", None)
    monkeypatch.delitem(sys.modules, "torchwhy.trace.file.remote_paths", raising=False)
    ran = run_here(command, "s3://no/such", *more.get(command, []), folder=tmp_path)
    assert (ran.returncode, ran.stdout) == (3, "")
    assert "needs the package universal_pathlib: pip install torchwhy[urls]" in ran.stderr
    assert list(tmp_path.iterdir()) == []


# --- processes that read ---------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "getsid"), reason="the system has no sessions")
def test_ctrl_c_in_a_terminal_does_not_reach_the_processes_that_read(runs):
    with workers.Processes(1, None) as reading:
        [(_, summary)] = reading.read([runs / "runs/even/rank0.json"])
        assert summary.rank == 0
        [reader] = reading._readers
        assert os.getsid(reader._process.pid) != os.getsid(0)
