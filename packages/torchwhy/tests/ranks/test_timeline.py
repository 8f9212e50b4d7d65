"""All ranks of a job on one timeline."""

import gzip
import json
from collections import Counter

import pytest

from tests.ranks.jobs import rank_story, write_job
from tests.traces import Story
from torchwhy.errors import ArgumentError, TraceError
from torchwhy.loading.job import load_job
from torchwhy.loading.trace import load
from torchwhy.ranks.timeline import clocks_of, merge_ranks
from torchwhy.trace.meaning.kinds import Kind


def merged(folder, output, **how):
    job = load_job(folder)
    found = merge_ranks(job, output)
    raw = output.read_bytes()
    return found, json.loads(gzip.decompress(raw) if output.suffix == ".gz" else raw)


def complete(document, **wanted):
    events = [event for event in document["traceEvents"] if event["ph"] == "X"]
    return [event for event in events if all(event.get(key) == value for key, value in wanted.items())]


@pytest.mark.parametrize("name", ["merged.json", "merged.json.gz"])
def test_every_event_of_every_rank_is_there_once(tmp_path, name):
    folder = write_job(tmp_path / "job", 3)
    found, document = merged(folder, tmp_path / name)
    wanted = Counter(e["name"] for path in folder.iterdir() for e in json.loads(path.read_text())["traceEvents"])
    assert Counter(event["name"] for event in complete(document)) == wanted
    assert [rank.events for rank in found.ranks] == [wanted.total() // 3] * 3
    assert sum(load(tmp_path / name).events.kind != Kind.OTHER) == wanted.total()
    assert [path.name for path in tmp_path.iterdir()] == sorted(["job", name])


def test_each_rank_has_processes_of_its_own(tmp_path):
    folder = tmp_path / "job"
    folder.mkdir()
    for rank in range(2):
        story = rank_story(rank, 2, compute=[300, 300])
        names = {"process_name": {"name": "python"}, "process_labels": {"labels": "CPU"}}
        names |= {"process_sort_index": {"sort_index": 5}, "thread_name": {"name": "main"}}
        for name, args in names.items():
            story.events.append({"ph": "M", "name": name, "pid": 100, "tid": 100, "ts": 0, "args": args})
        story.write(folder / f"rank{rank}.json")
    _, document = merged(folder, tmp_path / "merged.json")
    told = [event for event in document["traceEvents"] if event["ph"] == "M"]
    named = {event["pid"]: event["args"]["name"] for event in told if event["name"] == "process_name"}
    assert sorted(named.values()) == ["rank 0", "rank 0 python", "rank 1", "rank 1 python"]
    pids = [
        {event["pid"] for event in complete(document) if named[event["pid"]].startswith(f"rank {r}")} for r in (0, 1)
    ]
    assert len(pids[0]) == len(pids[1]) == 2
    assert not pids[0] & pids[1]
    places = {event["pid"]: event["args"]["sort_index"] for event in told if event["name"] == "process_sort_index"}
    assert max(places[pid] for pid in pids[0]) < min(places[pid] for pid in pids[1])
    assert [event["args"]["name"] for event in told if event["name"] == "thread_name"] == ["main", "main"]


def test_flows_of_two_ranks_do_not_meet(tmp_path):
    folder = tmp_path / "job"
    folder.mkdir()
    for rank in range(2):
        story = rank_story(rank, 2, compute=[300, 300])
        for i in (1, 2):
            flow = {"cat": "ac2g", "name": "ac2g", "pid": 100, "tid": 100, "id": i}
            story.events += [{**flow, "ph": "s", "ts": 5 + i}, {**flow, "ph": "f", "ts": 8 + i, "bp": "e"}]
        story.write(folder / f"rank{rank}.json")
    _, document = merged(folder, tmp_path / "merged.json")
    flows = Counter((event["ph"], event["id"]) for event in document["traceEvents"] if event["ph"] in "sf")
    assert set(flows.values()) == {1}
    assert len({number for _, number in flows}) == 4


def test_clocks_are_aligned_on_the_ends_of_collectives(tmp_path):
    """The clocks of the story's ranks disagree by seconds."""
    job = load_job(write_job(tmp_path / "job", 3, steps=4))
    clocks = clocks_of(job)
    assert [clock.moved_us for clock in clocks] == [0, -2_000_000, -4_000_000]
    assert [(clock.reference, clock.collectives) for clock in clocks] == [(None, 0), (0, 8), (0, 8)]
    merge_ranks(job, tmp_path / "merged.json")
    document = json.loads((tmp_path / "merged.json").read_text())
    ends = [event["ts"] + event["dur"] for event in complete(document) if "AllReduce" in event["name"]]
    assert sorted(Counter(ends).values()) == [3] * 8


def test_clocks_that_agree_stay_as_they_are(tmp_path):
    folder = tmp_path / "job"
    folder.mkdir()
    for rank in range(2):
        story = rank_story(0, 2, compute=[300, 300], distributedInfo={"rank": rank, "world_size": 2, "backend": "nccl"})
        for event in story.events:
            event["ts"] += 3.002 * rank
        story.write(folder / f"rank{rank}.json")
    found, document = merged(folder, tmp_path / "merged.json")
    assert [rank.clock.moved_us for rank in found.ranks] == [0, 0]
    assert sorted(event["ts"] for event in complete(document, name="ProfilerStep#3")) == [0, 3.002]


def test_bases_of_files_count(tmp_path):
    """Times are exact to the nanosecond, however large the base."""
    folder = tmp_path / "job"
    folder.mkdir()
    for rank, base in enumerate((1_700_000_000_000_000_001, 1_700_000_000_000_500_002)):
        top = {"baseTimeNanoseconds": base, "distributedInfo": {"rank": rank, "world_size": 2}}
        story = Story(gpu=None, **top)
        story.op("aten::mm", 0.5, 10)
        story.write(folder / f"rank{rank}.json")
    _, document = merged(folder, tmp_path / "merged.json")
    assert document["baseTimeNanoseconds"] == 1_700_000_000_000_000_001
    assert [event["ts"] for event in complete(document)] == [0.5, 500.501]


def test_ranks_without_a_collective_in_common_are_told(tmp_path):
    folder = tmp_path / "job"
    folder.mkdir()
    for rank in range(2):
        story = Story(gpu=None, distributedInfo={"rank": rank, "world_size": 2})
        story.op("aten::mm", 0, 10)
        story.write(folder / f"rank{rank}.json")
    assert [clock.reference for clock in clocks_of(load_job(folder))] == [None, None]


def test_a_damaged_trace_leaves_no_file(tmp_path):
    folder = write_job(tmp_path / "job", 2)
    text = (folder / "rank1.json").read_text()
    (folder / "rank1.json").write_text(text[: len(text) // 2])
    with pytest.raises(TraceError, match=r"rank1.json .*its events cannot be rewritten"):
        merge_ranks(load_job(folder), tmp_path / "merged.json")
    assert [path.name for path in tmp_path.iterdir()] == ["job"]


def test_a_trace_of_the_job_is_not_overwritten(tmp_path):
    folder = write_job(tmp_path / "job", 2)
    with pytest.raises(ArgumentError, match="output must not be a trace of the job"):
        merge_ranks(load_job(folder), folder / "rank0.json")


def test_values_that_are_no_json_and_lists_alone(tmp_path):
    folder = tmp_path / "job"
    folder.mkdir()
    for rank in range(2):
        event = '{"ph":"X","cat":"cpu_op","name":"a\\u00e4\u00e4","pid":1,"tid":1,"ts":"1.5","dur":2,"args":{"x":NaN}}'
        (folder / f"rank{rank}.json").write_text(f"[{event},\n{event}]", encoding="utf-8")
    _, document = merged(folder, tmp_path / "merged.json")
    assert [(event["name"], event["ts"], event["args"]) for event in complete(document)] == [
        ("aää", 1.5, {"x": None})
    ] * 4
