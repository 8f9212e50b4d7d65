"""`trace.ops()` is `key_averages()` of a trace; `trace.labels()` is the time in the program's own labels."""

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from tests.traces import Story
from torchwhy import load
from torchwhy.errors import ArgumentError


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A recording and the file it wrote."""
    model, x = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2)), torch.ones(4, 8)
    model(x).sum().backward()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, with_stack=True) as prof:
        for _ in range(3):
            model(x).sum().backward()
    path = tmp_path_factory.mktemp("recorded") / "trace.json"
    prof.export_chrome_trace(str(path))
    return prof, load(path)


def test_calls_own_times_and_bytes_are_those_of_key_averages(recorded):
    prof, trace = recorded
    ours = {row["name"]: row for row in trace.ops()}
    theirs = {row.key: row for row in prof.key_averages() if row.key.startswith(("aten::", "autograd::"))}
    assert set(theirs) <= set(ours)
    for name, row in theirs.items():
        assert ours[name]["calls"] == row.count
        assert ours[name]["host_self_us"] == pytest.approx(row.self_cpu_time_total, abs=1)
        assert ours[name]["host_self_bytes"] == row.self_cpu_memory_usage
        assert ours[name]["host_bytes"] == row.cpu_memory_usage


def test_no_share_is_over_one_and_own_shares_add_up(recorded):
    _, trace = recorded
    ops = trace.ops()
    assert max(ops["host_total_share"]) <= 1
    assert sum(ops["host_self_share"]) == pytest.approx(1)


def test_operators_by_stack(recorded):
    _, trace = recorded
    rows = [row for row in trace.ops(by_stack=2) if row["name"] == "aten::addmm"]
    assert [row["calls"] for row in rows] == [6]
    assert rows[0]["stack"].startswith("<built-in function linear> < torch/nn/modules/linear.py(")
    with pytest.raises(ArgumentError, match="by_stack must be a number of frames, 0 or more, got -1"):
        trace.ops(by_stack=-1)


def test_without_memory_no_bytes_are_told():
    story = Story()
    story.op("aten::mm", 0, 10)
    assert "host_bytes" not in story.trace().ops().columns


def test_labels_share_the_window_and_their_self_time_is_that_of_key_averages():
    story = Story()
    for at in story.steps(2, 1000):
        story.note("forward", at, 600)
        story.note("attention", at + 100, 200)
        story.op("aten::mm", at + 110, 50)
        story.kernel("gemm", at + 200, 80, launch_at=at + 120)
        story.note("Optimizer.step#SGD.step", at + 700, 100)
        story.note("Python GC", at + 850, 100)
    found = [tuple(row.values()) for row in story.trace().labels()]
    assert found == [("forward", 2, 1200, 0.6, 800, 160), ("attention", 2, 400, 0.2, 300, 160)]


def test_a_label_on_two_threads_never_takes_more_than_the_window():
    story = Story()
    story.step(0, 0, 1000)
    story.note("work", 0, 900)
    story.note("work", 50, 900, tid=200)
    (row,) = story.trace().labels()
    assert (row["calls"], row["host_us"], row["share"]) == (2, 950, 0.95)
