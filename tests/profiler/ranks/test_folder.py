"""Which files of a folder are traces, and which of them windows of one process."""

import pytest

from torchfx.errors import TraceError
from torchfx.profiler.ranks.folder import later_windows, traces_in

RUN = ("counts.json", "environment.json", "findings.json", "operators.json", "report.txt", "run.json", "trace.json.gz")


def make(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def names(folder):
    return [str(path.relative_to(folder)) for path in traces_in(folder)[0]]


def test_in_a_runs_folder_only_the_trace_counts(tmp_path):
    make(
        tmp_path, *RUN, "trace-2.json.gz", "trace-10.json.gz", "tensorboard/host_7.1700000000000000000.pt.trace.json.gz"
    )
    assert names(tmp_path) == ["trace.json.gz"]
    later = later_windows(tmp_path / "trace.json.gz")
    assert [path.name for path in later] == ["trace-2.json.gz", "trace-10.json.gz"]
    assert "trace-2.json.gz" in [path.name for path in traces_in(tmp_path)[1]]


def test_a_runs_trace_may_be_unpacked(tmp_path):
    make(tmp_path, *RUN[:-1], "trace.json", "trace-2.json")
    assert names(tmp_path) == ["trace.json"]
    assert [path.name for path in later_windows(tmp_path / "trace.json")] == ["trace-2.json"]


def test_packed_and_unpacked_are_one_window(tmp_path):
    make(tmp_path, *RUN, "trace.json", "trace-2.json", "trace-2.json.gz")
    assert names(tmp_path) == ["trace.json.gz"]
    for name in ("trace.json", "trace.json.gz"):
        assert [path.name for path in later_windows(tmp_path / name)] == ["trace-2.json.gz"]
    assert later_windows(tmp_path / "trace-2.json") == []


def test_each_rank_of_a_run_has_one(tmp_path):
    make(tmp_path, *(f"rank{rank}/{name}" for rank in (0, 1, 10) for name in (*RUN, "trace-2.json.gz")))
    assert names(tmp_path) == ["rank0/trace.json.gz", "rank1/trace.json.gz", "rank10/trace.json.gz"]


def test_different_runs_are_no_ranks(tmp_path):
    make(tmp_path, *(f"{run}/{name}" for run in ("train", "train-2") for name in RUN))
    with pytest.raises(TraceError, match="several runs, name one: train, train-2"):
        traces_in(tmp_path)


def test_one_run_in_a_folder_is_that_run(tmp_path):
    make(tmp_path, *(f"train/{name}" for name in RUN))
    assert names(tmp_path) == ["train/trace.json.gz"]


def test_windows_of_one_process_are_told_by_their_names(tmp_path):
    first, second, third = (
        f"host.lan_77.{at}.pt.trace.json" for at in (999999999999999999, 1700000000000000001, 1700000000000000002)
    )
    make(tmp_path, third, second, first, "events.json")
    assert names(tmp_path) == [first]
    assert [path.name for path in later_windows(tmp_path / first)] == [second, third]
    assert [path.name for path in later_windows(tmp_path / second)] == [third]


def test_processes_are_ranks(tmp_path):
    make(tmp_path, *(f"host_{pid}.{at}.pt.trace.json.gz" for pid in (77, 78) for at in (17, 18)))
    assert names(tmp_path) == ["host_77.17.pt.trace.json.gz", "host_78.17.pt.trace.json.gz"]


def test_names_without_a_time_are_processes_of_their_own(tmp_path):
    make(tmp_path, "rank0.pt.trace.json", "rank1.pt.trace.json")
    assert names(tmp_path) == ["rank0.pt.trace.json", "rank1.pt.trace.json"]
    assert later_windows(tmp_path / "rank0.pt.trace.json") == []


def test_other_names_are_traces_by_their_ending(tmp_path):
    make(tmp_path, "a.json", "b.JSON.GZ", "notes.txt", ".hidden.json")
    assert names(tmp_path) == ["a.json", "b.JSON.GZ"]
    assert [path.name for path in traces_in(tmp_path)[1]] == ["notes.txt"]
    assert later_windows(tmp_path / "a.json") == []
