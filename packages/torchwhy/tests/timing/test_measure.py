"""`measure` under a mock clock: exact counts, statistics and warnings."""

import json

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from mock_clock import MockClock
from torch.utils.benchmark import Compare

from torchwhy import measure
from torchwhy.errors import ArgumentError, ArgumentTypeError
from torchwhy.timing.machine import CpuTimes

WARM = [9.0] + [1.0] * 10  # the cold call, then two steady windows


def quiet():
    return None


def run(durations_s, **options):
    clock = MockClock()
    return measure(clock.taking(durations_s), clock=clock, cpu_times=quiet, max_time_s=1e6, **options), clock


def test_a_steady_function_is_timed_ten_times_after_eleven_to_warm_up():
    m, clock = run([9.0, 1.0])
    assert (m.n, m.warmup_calls, m.first_s, m.calls_per_run) == (10, 11, 9.0, 1)
    assert (m.median_s, m.iqr_s, m.p95_s, m.min_s) == (1.0, 0.0, 1.0, 1.0)
    assert len(clock.calls) == 21
    assert m.warnings == ()


def test_statistics_are_those_of_the_runs_alone():
    m, _ = run([*WARM, 1.0, 2.0, 3.0, 4.0, 5.0], max_runs=5, min_runs=5)
    assert m.times_s == (1.0, 2.0, 3.0, 4.0, 5.0)
    assert (m.median_s, m.iqr_s, m.p95_s, m.min_s) == (3.0, 2.0, 4.8, 1.0)
    assert (m.median_interval_s.low, m.median_interval_s.high) == (1.0, 5.0)


def test_more_spread_means_more_runs():
    runs = [1.0 + 0.05 * (i * 7 % 11) / 11 for i in range(3000)]
    narrow, _ = run([*WARM, *(1 + (t - 1) / 10 for t in runs)])
    wide, _ = run([*WARM, *runs])
    assert narrow.n == 10
    assert 10 < wide.n < 2000
    interval = wide.median_interval_s
    assert interval.high - interval.low <= 0.02 * wide.median_s


def test_max_runs_ends_what_never_becomes_precise():
    m, _ = run([*WARM, *([1.0, 3.0] * 500)], max_runs=40)
    assert m.n == 40
    assert [w.code for w in m.warnings] == ["wide-spread"]
    assert "100% of the median" in m.warnings[0].message


def test_a_slow_function_gets_one_run_and_a_warning():
    clock = MockClock()
    m = measure(clock.taking([90.0, 60.0]), clock=clock, cpu_times=quiet, max_time_s=10)
    assert (m.n, m.warmup_calls, m.first_s, m.median_s, len(clock.calls)) == (1, 1, 90.0, 60.0, 2)
    assert [w.code for w in m.warnings] == ["few-runs"]
    assert m.warnings[0].message == "1 run took 1.00 min, and max_time_s is 10: too few to separate chance from change"
    assert "raise max_time_s" in m.warnings[0].advice


def test_time_for_compiling_in_the_first_call_is_not_taken_from_the_runs():
    clock = MockClock()
    m = measure(clock.taking([600.0, 0.1]), clock=clock, cpu_times=quiet, max_time_s=10)
    assert (m.n, m.first_s) == (10, 600.0)


@pytest.mark.parametrize(("factor", "code"), [(0.97, "still-falling"), (1.03, "still-rising")])
def test_a_trend_in_the_runs_is_a_warning(factor, code):
    m, _ = run([*WARM, *(factor**i for i in range(30))], max_runs=30)
    assert code in [w.code for w in m.warnings]


def test_a_clock_that_costs_something_makes_blocks_in_which_it_does_not_matter():
    clock = MockClock()

    def read():
        clock.now_s += 1e-3
        return clock.now_s

    m = measure(clock.taking([1e-3]), clock=read, cpu_times=quiet)
    assert m.calls_per_run == 500
    assert m.median_s == pytest.approx(1e-3, rel=0.003)


def test_a_busy_machine_is_a_warning_with_numbers():
    readings = iter([CpuTimes(0, 0, 0), CpuTimes(40, 0, 20)])
    clock = MockClock()
    m = measure(clock.taking([1.0]), clock=clock, cpu_times=lambda: next(readings), max_time_s=1e6)
    assert [w.code for w in m.warnings] == ["busy-machine"]
    assert m.warnings[0].message.startswith("other processes used")


@given(st.lists(st.floats(1e-4, 1e2), min_size=20, max_size=60))
@settings(max_examples=30, deadline=None)
def test_any_times_give_ordered_statistics(durations_s):
    m, clock = run(durations_s, max_runs=50)
    assert m.min_s <= m.median_s <= m.p95_s <= max(m.times_s)
    assert m.median_interval_s.low <= m.median_s <= m.median_interval_s.high
    assert len(clock.calls) == m.warmup_calls + m.n * m.calls_per_run
    assert json.loads(json.dumps(m.to_dict()))["n"] == m.n


def test_result_reads_well_and_fits_torchs_tables():
    m, _ = run([*WARM, 1e-3], name="step", max_runs=200)
    assert str(m).startswith("step: median 1.00 ms, IQR 0 us, p95 1.00 ms, min 1.00 ms, n 100\n")
    assert repr(m) == str(m)
    assert m.to_torch().median == pytest.approx(1e-3)
    assert "step" in str(Compare([m.to_torch()]))


def test_a_real_function_is_timed_within_reason(one_thread):
    x = torch.ones(4)
    m = measure(lambda: x + 1, max_time_s=0.3)
    assert 1e-8 < m.min_s < 1e-2
    assert m.calls_per_run > 1
    assert not [w for w in m.warnings if w.code == "nothing-ran"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": 0.0}, r"precision must lie in \(0, 1\), got 0.0"),
        ({"min_runs": 0}, r"min_runs must lie in \[1, max_runs\] = \[1, 2000\], got 0"),
        ({"min_runs": 5, "max_runs": 4}, "got 5"),
        ({"max_time_s": float("nan")}, "max_time_s must be > 0, got nan"),
    ],
)
def test_limits_without_sense_are_refused(options, message):
    with pytest.raises(ArgumentError, match=message):
        measure(lambda: None, **options)


def test_passing_the_result_instead_of_the_function_is_explained():
    with pytest.raises(ArgumentTypeError, match=r"fn must be a function, got Tensor: pass lambda: step\(batch\)"):
        measure(torch.ones(2))


def test_an_async_function_is_refused():
    async def step():
        return 1

    with pytest.raises(ArgumentTypeError, match="must not be async"):
        measure(step)
