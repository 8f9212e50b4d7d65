"""A trace for Perfetto: nothing it would leave out, an arrow for each launch, all else as it was."""

import json
from collections import defaultdict

import pytest

import torchwhy
from tests.traces import HOST, THREAD, Story
from torchwhy.errors import ArgumentError
from torchwhy.export.perfetto import write_perfetto


def left_out(events):
    """What Perfetto leaves out: an event that begins inside another of its row and ends behind it."""
    rows, found = defaultdict(list), []
    for event in sorted((e for e in events if e["ph"] == "X"), key=lambda e: (e["ts"], -e["dur"])):
        tid = event["tid"]
        row = rows[event["pid"], tid if isinstance(tid, str) or tid >= 0 else event["pid"]]  # all negative ids are one
        while row and row[-1] <= event["ts"]:
            row.pop()
        if row and event["ts"] + event["dur"] > row[-1] + 1e-9:
            found.append(event["name"])
        row.append(event["ts"] + event["dur"])
    return found


def exported(story, tmp_path):
    given = story if isinstance(story, str) else story.text()
    (tmp_path / "trace.json").write_text(given)
    made = write_perfetto(str(tmp_path / "trace.json"), tmp_path / "out.json")
    return json.loads((tmp_path / "out.json").read_text()), made


def story():
    told = Story(custom={"kept": [1, 2.5]})
    told.events += [{"ph": "M", "name": "thread_name", "pid": 0, "tid": 7, "args": {"name": "stream 7"}}]
    told.step(1, 0, 1000)
    told.op("aten::mm", 10, 100, **{"Input Dims": [[2, 3]]})
    told.kernel("long", at=200, us=300, launch_at=20)
    told.kernel("beside", at=400, us=300, launch_at=40)
    told.kernel("after", at=800, us=50, launch_at=60)
    return told


def test_overlapping_kernels_get_a_row_of_their_own(tmp_path):
    told = story()
    assert left_out(told.events) == ["beside"]
    file, made = exported(told, tmp_path)
    assert left_out(file["traceEvents"]) == []
    moved = [e for e in file["traceEvents"] if e["ph"] == "X" and e["pid"] == 0 and e["tid"] != 7]
    assert [e["name"] for e in moved] == ["beside"]
    assert {
        "ph": "M",
        "pid": 0,
        "tid": moved[0]["tid"],
        "name": "thread_name",
        "args": {"name": "stream 7 (2)"},
    } in file["traceEvents"]
    assert (made.moved, made.clipped, made.left_out, made.arrows) == (1, 0, 0, 3)


def test_all_else_is_as_it_was(tmp_path):
    told = story()
    file, _ = exported(told, tmp_path)
    assert {key: value for key, value in file.items() if key != "traceEvents"} == told.top
    kept = file["traceEvents"][: len(told.events)]
    assert [{**e, "tid": 7} if e["name"] == "beside" else e for e in kept] == told.events


def test_arrows_go_from_each_launch_to_its_work_once(tmp_path):
    told = story()
    arrow = {"cat": "ac2g", "name": "ac2g", "id": 1}
    told.events += [
        {"ph": "s", **arrow, "pid": HOST, "tid": THREAD, "ts": 20},
        {"ph": "f", **arrow, "pid": 0, "tid": 7, "ts": 200, "bp": "e"},
        {"ph": "s", "cat": "fwdbwd", "name": "fwdbwd", "id": 1, "pid": HOST, "tid": THREAD, "ts": 10},
        {"ph": "f", "cat": "fwdbwd", "name": "fwdbwd", "id": 1, "pid": HOST, "tid": THREAD, "ts": 20, "bp": "e"},
    ]
    file, made = exported(told, tmp_path)
    points = [e for e in file["traceEvents"] if e["ph"] in "sf" and e["cat"] != "fwdbwd"]
    ends = {e["id"]: e for e in points if e["ph"] == "f"}
    work = {(e["pid"], e["tid"], e["ts"]): e["name"] for e in file["traceEvents"] if e["ph"] == "X" and e["pid"] == 0}
    to = {
        e["ts"]: work[ends[e["id"]]["pid"], ends[e["id"]]["tid"], ends[e["id"]]["ts"]] for e in points if e["ph"] == "s"
    }
    assert to == {20: "long", 40: "beside", 60: "after"}
    assert len(points) == 2 * made.arrows
    assert sum(e.get("cat") == "fwdbwd" for e in file["traceEvents"]) == 2


def test_the_file_says_the_same(tmp_path):
    exported(story(), tmp_path)
    before, after = torchwhy.load(tmp_path / "trace.json"), torchwhy.load(tmp_path / "out.json")
    for table in ("ops", "kernels", "launches", "steps"):
        assert getattr(after, table)().rows() == getattr(before, table)().rows(), table
    assert after.to_table()["launch"].tolist() == before.to_table()["launch"].tolist()


def test_threads_with_negative_numbers_are_told_apart(tmp_path):
    told = Story()
    told.op("aten::mm", 0, 100, tid=HOST)
    for tid in (-5, -6):
        told.events.append(
            {"ph": "M", "name": "thread_name", "pid": HOST, "tid": tid, "args": {"name": f"worker {tid}"}}
        )
        told.op("backward", 50, 100, tid=tid)
    assert len(left_out(told.events)) == 1
    file, made = exported(told, tmp_path)
    assert left_out(file["traceEvents"]) == []
    tids = [e["tid"] for e in file["traceEvents"] if e["name"] == "backward"]
    assert len({HOST, *tids}) == 3
    names = {e["tid"]: e["args"]["name"] for e in file["traceEvents"] if e["name"] == "thread_name"}
    assert [names[tid] for tid in tids] == ["worker -5", "worker -6"]
    assert made.moved == 0


def test_inexact_clocks_and_impossible_times(tmp_path):
    told = Story()
    told.op("outer", 0, 100)
    told.op("inner", 50, 50.5)
    told.kernel("never", at=1, us=10**12)
    file, made = exported(told, tmp_path)
    assert {e["name"]: e["dur"] for e in file["traceEvents"] if e["ph"] == "X"} == {"outer": 100, "inner": 50}
    assert (made.clipped, made.clipped_us, made.left_out) == (1, 0.5, 1)


def test_damaged_files_come_out_whole(tmp_path):
    text = story().text().replace('"aten::mm"', '"aten\n::mm"')
    with pytest.raises(ValueError, match="control character"):
        json.loads(text)
    file, _ = exported(text[: text.index('{"ph": "X", "cat": "kernel", "name": "after"')], tmp_path)
    assert [e["name"] for e in file["traceEvents"] if e.get("cat") == "kernel"] == ["long", "beside"]


def test_the_trace_is_not_overwritten(tmp_path):
    story().write(tmp_path / "trace.json")
    with pytest.raises(ArgumentError, match="differ from the trace's file"):
        write_perfetto(str(tmp_path / "trace.json"), tmp_path / "trace.json")
