"""A trace for speedscope: what its schema and its importer ask for, and no time lost but what is said."""

import gzip
import json

import pytest

from tests.traces import Story
from torchwhy.export.speedscope import write_speedscope

UNITS = {"none", "nanoseconds", "microseconds", "milliseconds", "seconds", "bytes"}


def check(file):
    """The rules of https://www.speedscope.app/file-format-schema.json, and of the importer: events nest."""
    assert file["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    for frame in file["shared"]["frames"]:
        assert {"name"} <= set(frame) <= {"name", "file", "line", "col"}
        assert isinstance(frame["name"], str)
        assert isinstance(frame.get("line", 0), int)
    assert set(file) <= {"$schema", "shared", "profiles", "name", "activeProfileIndex", "exporter"}
    assert 0 <= file["activeProfileIndex"] < len(file["profiles"])
    for profile in file["profiles"]:
        assert set(profile) == {"type", "name", "unit", "startValue", "endValue", "events"}
        assert profile["type"] == "evented"
        assert profile["unit"] in UNITS
        at, open_ = profile["startValue"], []
        for event in profile["events"]:
            assert set(event) == {"type", "at", "frame"}
            assert at <= event["at"] <= profile["endValue"]
            assert 0 <= event["frame"] < len(file["shared"]["frames"])
            at = event["at"]
            if event["type"] == "O":
                open_.append(event["frame"])
            else:
                assert event["type"] == "C"
                assert open_.pop() == event["frame"]
        assert not open_


def totals(file, place):
    """Nanoseconds by name, of all events of a profile."""
    found, open_ = {}, []
    for event in file["profiles"][place]["events"]:
        if event["type"] == "O":
            open_.append(event["at"])
        else:
            name = file["shared"]["frames"][event["frame"]]["name"]
            found[name] = found.get(name, 0) + event["at"] - open_.pop()
    return found


def story():
    told = Story()
    for i in range(3):
        at = 1000 * i
        told.step(i, at, 990)
        told.op("aten::mm", at + 10, 100)
        told.frame("train.py(34): step", at + 5, 200)
        told.kernel("gemm", at + 300, 300, launch_at=at + 20)
    told.op("aten::add", 100, 30, tid=101)
    return told


@pytest.mark.parametrize("name", ["out.json", "out.json.gz"])
def test_each_thread_and_stream_is_a_profile(tmp_path, name):
    made = write_speedscope(story().trace(), tmp_path / name)
    data = (tmp_path / name).read_bytes()
    file = json.loads(gzip.decompress(data) if name.endswith("gz") else data)
    check(file)
    assert [profile["name"] for profile in file["profiles"]] == ["thread 100", "thread 101", "thread 7"]
    assert totals(file, 0)["aten::mm"] == 300_000
    assert totals(file, 1) == {"aten::add": 30_000}
    assert totals(file, 2) == {"gemm": 900_000}
    assert {"name": "train.py(34): step", "file": "train.py", "line": 34} in file["shared"]["frames"]
    assert (made.clipped, made.events, made.bytes) == (0, 16, len(data))
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_work_that_overlaps_partly_is_clipped_and_said(tmp_path):
    told = story()
    told.kernel("beside", at=500, us=400)
    made = write_speedscope(told.trace(), tmp_path / "out.json")
    file = json.loads((tmp_path / "out.json").read_text())
    check(file)
    assert totals(file, 2) == {"gemm": 800_000, "beside": 400_000}
    assert (made.clipped, made.clipped_us) == (1, 100.0)


def test_names_can_hold_anything(tmp_path):
    told = Story()
    told.op('a"quote\\ and \u202e\x1b[2J', 0, 5)
    write_speedscope(told.trace(), tmp_path / "out.json")
    file = json.loads((tmp_path / "out.json").read_text())
    check(file)
    assert file["shared"]["frames"][-1]["name"] == 'a"quote\\ and \ufffd\ufffd[2J'


def test_a_trace_without_events(tmp_path):
    write_speedscope(Story().trace(), tmp_path / "out.json")
    file = json.loads((tmp_path / "out.json").read_text())
    assert file["profiles"] == []
