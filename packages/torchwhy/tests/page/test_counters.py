"""Curves of the page against what the trace says."""

import gc
import gzip
import io
import math
from types import SimpleNamespace

import numpy as np
import pytest

from tests.traces import Story
from torchwhy import load
from torchwhy.page.counters import counters_of, drawn_points


def written(tmp_path, story):
    return load(story.write(tmp_path / "trace.json"))


def counter(name, at, pid=0, **series):
    return {"ph": "C", "name": name, "pid": pid, "tid": 0, "ts": at, "args": series}


def curves(trace):
    return {curve.label: curve for curve in counters_of(trace)}


def test_counter_events_are_curves_with_their_units(tmp_path):
    story = Story()
    story.op("aten::mm", at=0, us=100)
    for i in range(10):
        story.events.append(counter("power (W)", 10 * i, value=200 + 0.125 * i))
        story.events.append(counter("used [MiB]", 10 * i, value=i))
        story.events.append(counter("queue", 10 * i, length=-i, limit=8))
    found = curves(written(tmp_path, story))
    power = found["power"]
    assert power.unit == "W"
    assert power.values / power.divisor == pytest.approx([200 + 0.125 * i for i in range(10)])
    assert power.times.tolist() == [10_000 * i for i in range(10)]
    assert (found["used"].unit, found["used"].values.tolist()) == ("B", [i * 2**20 for i in range(10)])
    assert found["queue length"].values.tolist() == [-i for i in range(10)]
    assert found["queue limit"].values.tolist() == [8] * 10


def test_counters_of_several_processes_are_told_apart(tmp_path):
    story = Story()
    story.op("aten::mm", at=0, us=100)
    for pid in (1, 2):
        name = {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "ts": 0, "args": {"name": f"worker {pid}"}}
        story.events += [name, counter("queue", 5, pid, value=pid)]
    found = curves(written(tmp_path, story))
    assert {label: curve.values.tolist() for label, curve in found.items()} == {
        "worker 1, queue": [1],
        "worker 2, queue": [2],
    }


@pytest.mark.parametrize("value", ["text", None, True, [1], {"a": 1}, "NaN", "1e999", 2**80, -(2**80), 1e-300, 0.1])
def test_odd_values_harm_nothing(tmp_path, value):
    story = Story()
    story.op("aten::mm", at=0, us=100)
    story.events += [
        counter("queue", 1, value=3),
        counter("queue", 2, value=value),
        counter("", 3),
        counter("x", 3, **{"": 1}),
    ]
    found = curves(written(tmp_path, story))
    queue = found["queue"]
    assert queue.times[0] == 1000
    assert (np.abs(queue.values) <= 2**53).all()
    real = isinstance(value, int | float) and not isinstance(value, bool)
    if real and abs(value) < 2**53:
        assert queue.values / queue.divisor == pytest.approx([3, value], abs=1e-5)
    assert len(queue.values) == (2 if real else 1)


def test_a_trace_that_is_not_read_twice_has_its_other_curves(tmp_path):
    story = Story()
    story.memory(at=1, size=8, allocated=8)
    story.op("aten::mm", at=0, us=100)
    story.events.append(counter("queue", 1, value=1))
    path = story.write(tmp_path / "trace.json")
    trace = load(path)
    path.unlink()
    assert list(curves(trace)) == ["GPU 0 memory in use"]


def test_counters_of_standard_input_are_those_of_its_file(tmp_path, monkeypatch):
    story = Story()
    story.op("aten::mm", at=0, us=100)
    story.events += [counter("power (W)", i, value=200 + i) for i in range(10)]
    path = story.write(tmp_path / "trace.json")
    wanted = curves(load(path))["power"].values.tolist()
    for data in (path.read_bytes(), gzip.compress(path.read_bytes())):
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(data)))
        trace = load("-")
        kept = trace.origin.path
        assert trace.file == "standard input"
        assert curves(trace)["power"].values.tolist() == wanted
        del trace
        gc.collect()
        assert not kept.exists()


def test_how_busy_a_device_is_adds_up_to_its_work(tmp_path):
    story = Story()
    story.op("aten::mm", at=0, us=5)
    rng = np.random.default_rng(0)
    at, whole = 10, 0
    for _ in range(300):
        us = int(rng.integers(1, 40))
        story.kernel("k", at=at, us=us, launch_at=at - 5)
        whole += us
        at += us + int(rng.integers(0, 30))
    busy = next(curve for label, curve in curves(written(tmp_path, story)).items() if label.startswith("GPU 0 busy"))
    assert len(busy.times) <= 503
    assert (busy.times[0], busy.values[0]) == (0, 0)
    assert busy.values.max() <= 100 * busy.divisor
    assert busy.values[-1] == 0
    told = (busy.values[:-1] * np.diff(busy.times)).sum() / (100 * busy.divisor) / 1000
    assert told == pytest.approx(whole, rel=0.01)


def test_launches_that_wait_are_told_by_stream_and_by_device(tmp_path):
    story = Story()
    for stream in (7, 8):
        for i in range(3):
            story.kernel("k", at=50 + 10 * i, us=5, launch_at=i * 4 + stream, stream=stream)
    found = curves(written(tmp_path, story))
    assert found["GPU 0 stream 7 launches waiting"].values.max() == 3
    assert found["GPU 0 launches waiting, all streams"].values.max() == 6
    assert found["GPU 0 launches waiting, all streams"].values[-1] == 0


def test_threads_in_an_operator_are_counted_where_there_are_several(tmp_path):
    story = Story()
    story.op("aten::a", at=0, us=100)
    story.op("aten::b", at=10, us=20)
    assert "threads in an operator" not in curves(written(tmp_path, story))
    story.op("aten::c", at=40, us=20, tid=300)
    curve = curves(written(tmp_path, story))["threads in an operator"]
    assert list(zip(curve.times // 1000, curve.values, strict=True)) == [(0, 1), (40, 2), (60, 1), (100, 0)]


def test_the_mean_of_a_long_curve_is_that_of_all_its_points(tmp_path):
    story = Story()
    values = [1000 + 900 * math.sin(i * i) for i in range(20_000)]
    for i, value in enumerate(values):
        story.events.append(counter("queue", i, value=round(value)))
    story.op("aten::mm", at=0, us=20_000)
    curve = curves(written(tmp_path, story))["queue"]
    assert len(curve.times) <= 4000
    lengths = np.diff(curve.times)
    mean = (curve.means[:-1] * lengths).sum() / lengths.sum()
    assert mean == pytest.approx(np.mean([round(value) for value in values]), rel=1e-3)
    assert drawn_points(curve.times, curve.values, 4000).tolist() == list(range(len(curve.times)))
