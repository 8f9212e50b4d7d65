"""Which files of a folder are traces, and which of them windows of one process."""

import pytest

from tests.traces import Story
from torchwhy.errors import TraceError
from torchwhy.ranks.folder import find_traces, later_windows, single_trace

RUN = ("counts.json", "environment.json", "findings.json", "operators.json", "report.txt", "run.json", "trace.json.gz")


def make(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def names(folder):
    return [str(path.relative_to(folder)) for path in find_traces(folder).traces]


def test_in_a_runs_folder_only_the_trace_counts(tmp_path):
    make(
        tmp_path, *RUN, "trace-2.json.gz", "trace-10.json.gz", "tensorboard/host_7.1700000000000000000.pt.trace.json.gz"
    )
    assert names(tmp_path) == ["trace.json.gz"]
    later = later_windows(tmp_path / "trace.json.gz")
    assert [path.name for path in later] == ["trace-2.json.gz", "trace-10.json.gz"]
    assert "trace-2.json.gz" in [path.name for path in find_traces(tmp_path).others]


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
        find_traces(tmp_path)


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
    assert [path.name for path in find_traces(tmp_path).others] == ["notes.txt"]
    assert later_windows(tmp_path / "a.json") == []


def stories(folder, *names, **top):
    for name in names:
        (folder / name).write_text(Story(**top).text())
    return folder


def world(size, rank=0):
    return {"distributedInfo": {"backend": "nccl", "pg_config": [{"pg_name": "0"}], "rank": rank, "world_size": size}}


def test_a_job_is_told_by_the_size_of_its_world(tmp_path):
    for rank, name in enumerate(("a.json", "b.json")):
        stories(tmp_path, name, **world(8, rank))
    assert find_traces(tmp_path).is_job
    assert single_trace(tmp_path) is None


@pytest.mark.parametrize("names", [("rank0.json", "rank1.json"), ("h_7.17.pt.trace.json", "h_8.18.pt.trace.json")])
def test_a_job_is_told_by_names(tmp_path, names):
    assert find_traces(stories(tmp_path, *names)).is_job


def test_traces_of_different_programs_are_no_job(tmp_path):
    stories(tmp_path, "resnet.json", **world(1))
    stories(tmp_path, "bert.json", **world(8))
    (tmp_path / "broken.json").write_text("{")
    message = "holds 3 traces, and neither they nor their names say .* name those to read, such as .*bert.json"
    with pytest.raises(TraceError, match=message):
        single_trace(tmp_path)


def test_traces_of_programs_alone_are_no_job(tmp_path):
    assert not find_traces(stories(tmp_path, "resnet.json", "bert.json", **world(1))).is_job


def test_names_of_traces_are_no_names_of_processes(tmp_path):
    """Only what the handler writes has a time in its name."""
    stories(tmp_path, "resnet.pt.trace.json", "bert.pt.trace.json", "alexnet.json")
    assert names(tmp_path) == ["alexnet.json", "bert.pt.trace.json", "resnet.pt.trace.json"]
    assert not find_traces(tmp_path).is_job
