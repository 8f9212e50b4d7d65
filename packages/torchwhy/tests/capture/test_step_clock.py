"""The profiler's cost comes from medians of steps with and without it."""

import pytest

from torchwhy.capture.schedule import Schedule
from torchwhy.capture.step_clock import StepClock


def run(durations_us, cold_start, between_us=0):
    return run_clock(durations_us, cold_start, between_us).overhead()


def run_clock(durations_us, cold_start, between_us=0, worked_us=None):
    """The clock after steps that took so long, and worked as long unless `worked_us` has how long."""
    now = ran = 0
    clock = StepClock(Schedule(wait=2, warmup=1, active=2), cold_start, clock=lambda: now, processor=lambda: ran)
    for duration, worked in zip(durations_us, worked_us or durations_us, strict=True):
        now, ran = now + duration * 1000, ran + worked * 1000
        clock.end()
        now, ran = now + between_us * 1000, ran + between_us * 1000
        clock.begin()
    return clock


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


BEFORE = [900, 10, 50, 15, 17]


def test_recorded_steps_are_compared_with_their_neighbours():
    overhead = run([*BEFORE, *[12] * 10, *[99] * 50], cold_start=True)
    assert (overhead.baseline_us, overhead.baseline_n) == (12.0, 10)


@pytest.mark.parametrize(("change", "said"), [(2, "steps become longer"), (-2, "steps become shorter")])
def test_steps_that_change_while_the_program_runs_are_no_baseline(change, said):
    overhead = run([*BEFORE, *(40 + change * number for number in range(10))], cold_start=True)
    assert overhead.ratio is None
    assert overhead.unlike.startswith(said)


@pytest.mark.parametrize("steps", [[40, 43, 39, 41, 44, 38, 42, 40, 45, 39], [40, 41, 42] * 4, list(range(200, 210))])
def test_steps_that_only_scatter_or_hardly_change_are_a_baseline(steps):
    assert run([*BEFORE, *steps], cold_start=True).ratio is not None


def test_steps_in_which_something_was_compiled_are_compared_with_none():
    overhead = run_clock([*BEFORE, 12, 14], cold_start=True).overhead(compiled=True)
    assert overhead.ratio is None
    assert "compiled" in overhead.unlike


def test_steps_on_a_busy_machine_are_compared_with_none():
    overhead = run_clock([*BEFORE, 12, 14], cold_start=True).overhead(busy=True)
    assert overhead.ratio is None
    assert "busy" in overhead.unlike


@pytest.mark.parametrize("recorded", [15, 30, 90])
@pytest.mark.parametrize("share", [0.0, 0.4, 0.6, 1.0, 3.0])
def test_only_what_recording_works_is_its_cost(recorded, share):
    steps, base = [900, 10, 10, recorded, recorded, 10, 10], 4
    worked = [900, base, base, *[base + round(share * (recorded - 10))] * 2, base, base]
    overhead = run_clock(steps, cold_start=True, worked_us=worked).overhead()
    assert (overhead.ratio is not None) == (share >= 0.5)
    assert overhead.unlike == ("" if share >= 0.5 else "the recorded steps took longer, but hardly more processor time")


def test_steps_that_wait_no_longer_need_no_work_to_be_compared():
    steps, worked = [900, 10, 10, 10, 11, 10, 10], [0] * 7
    assert run_clock(steps, cold_start=True, worked_us=worked).overhead().ratio == pytest.approx(1.05)


def test_unrecorded_steps_are_told_with_their_numbers_but_for_the_cold_one():
    clock = run_clock([*BEFORE, 12, 14], cold_start=True)
    assert clock.unrecorded() == [(1, 10.0), (5, 12.0), (6, 14.0)]


def test_of_many_unrecorded_steps_the_first_are_told():
    numbers = [number for number, _ in run_clock([10] * 3000, cold_start=False).unrecorded()]
    assert numbers == [0, 1, *range(5, 1003)]


@pytest.mark.parametrize(
    ("recorded_us", "settled"),
    [
        ([100], False),
        ([100, 103, 104], True),
        ([100, 103, 106], False),  # 5.8 % of the median
        ([100, 160, 101, 100, 99, 102, 98, 100, 101, 100], True),  # one step of ten says nothing of the median
        ([100, 160] * 5, False),
        ([100, 160] * 10, True),  # as many as are recorded
        ([900_000, 1_200_000], True),  # 2.1 s
    ],
)
def test_steps_are_enough_when_their_median_is_known(recorded_us, settled):
    now = 0
    clock = StepClock(Schedule(wait=0, warmup=0, active=30), cold_start=False, clock=lambda: now)
    for duration in recorded_us:
        now += duration * 1000
        clock.end()
        clock.begin()
    assert clock.is_settled() is settled
