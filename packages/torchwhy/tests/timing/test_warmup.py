"""Warming up: until times no longer fall, within a limit."""

from hypothesis import given
from hypothesis import strategies as st

from torchwhy.timing.warmup import SHORTEST_S, settle


def calls(times):
    sequence = iter(times)
    return lambda: next(sequence)


def test_a_steady_function_needs_two_windows():
    assert len(settle(calls([1.0] * 50), first_s=1.0, limit_s=100.0)) == 11


def test_falling_times_are_waited_for():
    falling = [2.0**-i for i in range(12)] + [2.0**-12] * 50
    assert len(settle(calls(falling), first_s=9.0, limit_s=100.0)) == 1 + 20


def test_the_limit_ends_it_but_one_call_follows_the_cold_one():
    assert settle(calls([5.0, 5.0]), first_s=60.0, limit_s=1.0) == (60.0, 5.0)


def test_the_cold_call_does_not_use_up_the_limit():
    assert len(settle(calls([0.1] * 50), first_s=1000.0, limit_s=10.0)) == 11


@given(st.lists(st.floats(0.02, 1.0), min_size=26, max_size=26), st.floats(0.05, 0.5))
def test_it_never_runs_past_the_limit_by_more_than_a_call(times, limit_s):
    used = settle(calls(times), first_s=0.5, limit_s=limit_s)[1:]
    assert sum(used[:-1]) < limit_s
    assert sum(used) >= min(limit_s, SHORTEST_S)
