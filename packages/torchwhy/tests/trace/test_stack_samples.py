"""Samples of the stacks in a trace: read, refused where they make no sense, and tied to calls by time."""

import numpy as np
import pytest

from tests.traces import THREAD, Story
from torchwhy.rules.evidence import evidence
from torchwhy.trace.derived.stack_samples import recorded_samples, sampled_line, stack_samples
from torchwhy.trace.model.intervals import Intervals

FRAMES = ["train.py(9): step", "torch/nn/modules/linear.py(134): forward", "train.py(20): loop"]


def told(**changes):
    return {
        "frames": FRAMES,
        "lines": ["x = layer(x)", "return F.linear(x)", "with lock:"],
        "stacks": [[1, 0, 2], [2]],
        "times_ns": [10**18 + 20_000, 10**18 + 40_000, 10**18 + 150_000, 10**18 + 170_000],
        "which": [0, 0, 1, 1],
        **changes,
    }


def traced(samples):
    story = Story(gpu=None)
    story.top |= {"baseTimeNanoseconds": 10**18, "torchwhy_stack_samples": samples}
    story.op("aten::linear", 10, 50)
    story.op("aten::mm", 200, 50)
    return story.trace()


def test_an_operators_line_is_that_of_the_samples_taken_in_it():
    trace = traced(told())
    (found,) = evidence(trace, [int(np.flatnonzero(trace.events.ts == 10_000)[0])])
    assert found.stack == ("train.py(9): step", "train.py(20): loop")


@pytest.mark.parametrize(("thread", "count"), [(THREAD, 4), (THREAD + 1, 0), (None, 4)])
def test_samples_of_another_thread_than_the_one_that_works_name_no_line(thread, count):
    trace = traced(told(thread=thread))
    assert len(stack_samples(trace).times) == count
    assert len(recorded_samples(trace).times) == 4


def test_a_line_has_its_source():
    assert sampled_line(traced(told()), Intervals.union([100_000], [190_000])) == ("train.py(20): loop", "with lock:")


def test_a_comprehension_and_its_function_are_one_line():
    frames = ["data.py(9): row", "data.py(9): <listcomp>", "data.py(12): row"]
    given = {"frames": frames, "lines": ["x = [f(y) for y in z]"] * 2 + ["return x"], "stacks": [[0], [1, 0], [2]]}
    given |= {"times_ns": [10**18 + 1000 * k for k in range(9)], "which": [0, 0, 1, 1, 1, 2, 2, 2, 2]}
    found = sampled_line(traced(told(**given)), Intervals.union([0], [10_000]))
    assert found == ("data.py(9): <listcomp>", "x = [f(y) for y in z]")


def test_one_sample_names_no_line():
    assert sampled_line(traced(told()), Intervals.union([160_000], [190_000])) == ("", "")


@pytest.mark.parametrize(
    "samples",
    [
        None,
        [],
        {},
        told(which=[0, 0, 1, 2]),
        told(which=[0, -1, 1, 1]),
        told(which=[0]),
        told(stacks=[[1, 0, 7], [2]]),
        told(lines=["x"]),
        told(times_ns=["now", 1, 2, 3]),
        told(frames=5),
        told(which=[[0], [0], [1], [1]], times_ns=[[1], [2], [3], [4]]),
    ],
)
def test_samples_that_make_no_sense_are_none(samples):
    assert len(stack_samples(traced(samples)).times) == 0
