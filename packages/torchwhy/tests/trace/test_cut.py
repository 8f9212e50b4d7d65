"""A part of a trace as a file: what it has is what it had, and it says the same."""

import gzip
import json

import pytest

import torchwhy
from tests.traces import Story
from torchwhy.errors import ArgumentError, TraceError

META = [
    {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "python"}},
    {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "main"}},
]


def loop(steps=6):
    """Steps of 1 ms whose device work runs in the next step, with arrows from launch to kernel."""
    story = Story(schedule="x")
    story.events += META
    for i, at in enumerate(story.steps(steps, 990, every=1000)):
        story.op("aten::mm", at + 10, 100)
        kernel = story.kernel(f"k{i}", at + 1200, 50, launch_at=at + 20)
        number = kernel["args"]["correlation"]
        arrow = {"cat": "ac2g", "name": "ac2g", "id": number}
        story.events.append({"ph": "s", **arrow, "pid": 1, "tid": 1, "ts": at + 20})
        story.events.append({"ph": "f", **arrow, "pid": 0, "tid": 7, "ts": at + 1200, "bp": "e"})
        story.call("cudaStreamSynchronize", at + 300, 600)
    return story


def written(path):
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)


def names(path):
    return [event["name"] for event in written(path)["traceEvents"]]


@pytest.mark.parametrize("name", ["small.json", "small.json.gz"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_steps_with_their_work_launches_and_arrows(tmp_path, name, pack):
    story = loop()
    (tmp_path / "trace.json").write_bytes(pack(story.text().encode()))
    made = torchwhy.cut(tmp_path / "trace.json", tmp_path / name, steps="2-3")
    expected = [e for e in story.events if e["ph"] == "M"]
    for i in (2, 3):
        first = story.events.index(next(e for e in story.events if e["name"] == f"ProfilerStep#{i}"))
        expected += story.events[first : first + 7]
    assert written(tmp_path / name) == {**story.top, "traceEvents": expected}
    assert (made.events, made.of_events) == (16, 44)
    assert made.bytes == (tmp_path / name).stat().st_size
    assert {path.name for path in tmp_path.iterdir()} == {"trace.json", name}


def test_the_part_says_the_same(tmp_path):
    loop(9).write(tmp_path / "trace.json")
    torchwhy.cut(tmp_path / "trace.json", tmp_path / "part.json.gz", steps=(3, 7))
    whole = torchwhy.load(tmp_path / "trace.json", steps=(3, 7))
    part = torchwhy.load(tmp_path / "part.json.gz")
    assert [step.name for step in part.steps_found] == [f"ProfilerStep#{i}" for i in range(3, 8)]
    assert part.ops().rows() == whole.ops().rows()
    assert part.kernels().rows() == whole.kernels().rows()
    findings = [(f.code, f.title, f.time_us, f.cause, f.fix) for f in part.diagnose()]
    assert findings == [(f.code, f.title, f.time_us, f.cause, f.fix) for f in whole.diagnose()]
    assert findings


def test_windows_and_categories(tmp_path):
    loop().write(tmp_path / "trace.json")
    torchwhy.cut(tmp_path / "trace.json", tmp_path / "a.json", window=(2000, 2990))
    assert {"k1", "k2", "ProfilerStep#2"} <= set(names(tmp_path / "a.json")) - {"k4", "ProfilerStep#3"}
    torchwhy.cut(tmp_path / "trace.json", tmp_path / "b.json", categories=["kernel"])
    assert set(names(tmp_path / "b.json")) == {"process_name", "thread_name", *(f"k{i}" for i in range(6))}


def test_events_are_copied_byte_by_byte(tmp_path):
    odd = b'{"ph":"X", "cat":"cpu_op",  "name":"a", "ts":1.500, "dur":2e0,\n "pid":1,"tid":1,"args":{"not kept":[1.0]}}'
    data = b"[\n" + odd + b" ,\n" + odd + b'\t, {"ph": "X", "cat": "kernel", "ts": 4, "dur": 1}]'
    (tmp_path / "trace.json").write_bytes(data)
    torchwhy.cut(tmp_path / "trace.json", tmp_path / "part.json", categories="operator")
    assert (tmp_path / "part.json").read_bytes() == b'{"traceEvents": [\n' + odd + b",\n" + odd + b"\n]}\n"


@pytest.mark.parametrize("cut_at", [None, -3])
def test_a_damaged_file_gives_a_proper_one(tmp_path, cut_at):
    data = b"""{"a": NaN, "traceEvents": [
    {"ph": "X", "cat": "cpu_op", "name": "say "hi" \x01", "ts": 1, "dur": NaN, "args": {"x": 1,}},, 5,
    {"ph": "X", "cat": "cpu_op", "name": "\xff", "ts": 2, "dur": 1} ], "b": 1}"""
    (tmp_path / "trace.json").write_bytes(data[:cut_at])
    torchwhy.cut(tmp_path / "trace.json", tmp_path / "part.json", categories="cpu_op")
    found = written(tmp_path / "part.json")
    assert found["a"] is None
    assert [event["name"] for event in found["traceEvents"]] == ['say "hi" \x01', "\ufffd"]


def test_the_trace_itself_is_never_overwritten(tmp_path):
    path = loop().write(tmp_path / "trace.json")
    before = path.read_bytes()
    (tmp_path / "link.json").symlink_to(path)
    for output in (path, tmp_path / "link.json"):
        with pytest.raises(ArgumentError, match="output must differ from the trace's file"):
            torchwhy.cut(path, output, steps=1)
    assert path.read_bytes() == before


def test_what_cannot_be_cut(tmp_path):
    path = loop().write(tmp_path / "trace.json")
    with pytest.raises(ArgumentError, match="one of steps, window and categories"):
        torchwhy.cut(path, tmp_path / "out.json")
    with pytest.raises(ArgumentError, match="among the recorded 0 to 5"):
        torchwhy.cut(path, tmp_path / "out.json", steps="5-9")
    with pytest.raises(TraceError, match="does not exist"):
        torchwhy.cut(tmp_path / "missing.json", tmp_path / "out.json", steps=1)
    with pytest.raises(OSError, match="No such file"):
        torchwhy.cut(path, tmp_path / "no folder" / "out.json", steps=1)
    assert {one.name for one in tmp_path.iterdir()} == {"trace.json"}
