"""What is usual of a program: on steps short enough to do by hand."""

import pytest

from tests.traces import Story
from torchwhy.trace.derived.steady_state import settled, steady_window, typical, unrecorded_steps
from torchwhy.trace.model.intervals import Intervals

US = 1000


def steps(*lengths, **top):
    made, at = Story(gpu=None, **top), 0
    for i, us in enumerate(lengths):
        made.step(i, at, us)
        made.op("aten::mm", at, 10)
        at += us
    return made.trace()


def test_a_cold_first_step_is_left_out():
    trace = steps(1000, 100, 110)
    assert settled(trace) == trace.window.start + 1000 * US
    assert steady_window(trace).us == 210
    assert steady_window(steps(250, 100, 100)).us == 450, "twice and a half is not cold"


def test_one_step_that_was_held_up_is_an_outlier():
    trace = steps(100, 100, 400)
    start = trace.window.start
    found = typical(
        trace, Intervals.union([start, start + 210 * US], [start + 10 * US, start + 590 * US]), trace.window
    )
    assert found.outlier == trace.steps_found[2]
    assert found.share == pytest.approx(0.05)


def test_what_two_of_six_steps_do_is_a_habit():
    trace = steps(100, 100, 500, 100, 100, 400)
    at = [trace.window.start + us * US for us in (200, 900)]
    lost = Intervals.union(at, [at[0] + 450 * US, at[1] + 350 * US])
    found = typical(trace, lost, trace.window)
    assert found.outlier is None
    assert found.share == pytest.approx(800 / 1300)
    once = typical(trace, Intervals.union(at, [at[0] + 450 * US, at[1] + 50 * US]), trace.window)
    assert once.outlier == trace.steps_found[2]


def test_what_every_step_does_is_usual():
    trace = steps(100, 100, 160)
    start = trace.window.start
    lost = Intervals.union(
        [start, start + 100 * US, start + 200 * US], [start + 50 * US, start + 150 * US, start + 300 * US]
    )
    found = typical(trace, lost, trace.window)
    assert found.outlier is None
    assert found.share == pytest.approx(200 / 360)


def test_steps_that_were_not_recorded_tell_what_is_usual():
    seen = [[number, 100.5] for number in range(34)]
    trace = steps(100, 400, torchwhy_unrecorded_steps=seen)
    lost = Intervals.union([trace.window.start + 150 * US], [trace.window.end])
    assert unrecorded_steps(trace).tolist() == [100.5] * 34
    assert typical(trace, lost, trace.window).outlier == trace.steps_found[1]
    often = [[number, 400 if number % 4 == 0 else 100] for number in range(34)]
    trace = steps(100, 400, torchwhy_unrecorded_steps=often)
    assert typical(trace, lost, trace.window).outlier is None, "every fourth is"
    assert len(unrecorded_steps(steps(100, torchwhy_unrecorded_steps="none"))) == 0


def test_two_steps_tell_nothing():
    trace = steps(100, 400)
    assert (
        typical(trace, Intervals.union([trace.window.start + 150 * US], [trace.window.end]), trace.window).outlier
        is None
    )


def test_steps_that_recording_made_longer_are_the_usual_ones():
    """Nearly all recorded steps take twice as long as those that weren't recorded: none of them is an outlier."""
    trace = steps(200, 210, 200, 120, 205, torchwhy_unrecorded_steps=[[i, 100.0] for i in range(20)])
    assert typical(trace, Intervals.union([0], [trace.window.end]), trace.window).outlier is None
