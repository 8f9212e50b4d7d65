"""The profiler's cost comes from medians of steps with and without it."""

import pytest

from torchfx.profiler.capture.schedule import Schedule
from torchfx.profiler.capture.step_clock import StepClock


def run(durations_us, cold_start, between_us=0):
    now = 0
    clock = StepClock(Schedule(wait=2, warmup=1, active=2), cold_start, clock=lambda: now)
    for duration in durations_us:
        now += duration * 1000
        clock.end()
        now += between_us * 1000
        clock.begin()
    return clock.overhead()


def test_baseline_is_the_steps_after_the_last_window():
    overhead = run([900, 10, 50, 15, 17, 12, 14], cold_start=True)
    assert (overhead.baseline_us, overhead.baseline_n) == (13.0, 2)
    assert (overhead.profiled_us, overhead.profiled_n) == (16.0, 2)
    assert overhead.ratio == pytest.approx(16 / 13)


def test_without_steps_after_it_those_before_but_the_cold_one_are_the_baseline():
    overhead = run([900, 10, 50, 15, 17], cold_start=True)
    assert (overhead.baseline_us, overhead.baseline_n) == (10.0, 1)


def test_a_warm_first_step_counts():
    assert run([10, 12], cold_start=False).baseline_n == 2


def test_time_between_end_and_begin_belongs_to_no_step():
    assert run([9, 10, 50, 15, 17, 12], True, between_us=1000) == run([9, 10, 50, 15, 17, 12], True)


def test_without_a_warm_unprofiled_step_the_cost_is_unknown():
    overhead = run([900], cold_start=True)
    assert overhead.baseline_us is None
    assert overhead.ratio is None
