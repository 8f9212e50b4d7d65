"""`compare` under a mock clock: turns, ratios, and no winner without evidence."""

import json
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mock_clock import MockClock

from torchwhy import compare
from torchwhy.errors import ArgumentError, ArgumentTypeError
from torchwhy.timing.comparison import Comparison, Ratio


def run(durations, **options):
    clock = MockClock()
    functions = {name: clock.taking(times, name) for name, times in durations.items()}
    defaults = {"max_time_s": 1e6, "shuffle": lambda turns: None}
    return compare(functions, clock=clock, cpu_times=lambda: None, **{**defaults, **options}), clock


def test_functions_take_turns_after_each_has_warmed_up():
    found, clock = run({"a": [1.0], "b": [2.0]})
    assert "".join(clock.calls) == "a" * 11 + "b" * 11 + "ab" * found["a"].n
    assert found["a"].n == found["b"].n == 15


def test_each_round_draws_its_order_anew():
    _, clock = run({"a": [1.0], "b": [1.0], "c": [1.0]}, shuffle=list.reverse)
    assert "".join(clock.calls[33:]) == "cbaabc" * 7 + "cba"


def test_the_place_in_a_round_makes_no_winner():
    """Whoever comes first in a round takes 3% longer: it finds caches that were filled by something else."""
    winners = []
    for seed in range(50):
        clock, runs = MockClock(), []

        def step(clock=clock, runs=runs):
            runs.append(1)
            clock.now_s += 1.03 if len(runs) > 33 and len(runs) % 3 == 1 else 1.0

        order = random.Random(seed).shuffle
        functions = {"a": step, "b": lambda step=step: step(), "c": lambda step=step: step()}
        found = compare(functions, clock=clock, cpu_times=lambda: None, max_time_s=1e6, max_runs=100, shuffle=order)
        winners.append(found.winner)
    assert winners == [None] * 50


@pytest.mark.many
def test_short_functions_of_similar_length_run_equally_often():
    clock = MockClock()

    def read():
        clock.now_s += 1e-6
        return clock.now_s

    functions = {name: clock.taking([s], name) for name, s in (("a", 1e-6), ("b", 1.3e-6), ("c", 1e-2), ("d", 9e-5))}
    found = compare(functions, clock=read, cpu_times=lambda: None, max_time_s=1.0, min_runs=3, max_runs=3)
    assert [m.calls_per_run for m in found.measurements] == [500, 500, 1, 109]  # d: 10 ms a run


def test_the_programs_random_numbers_stay_as_they_are():
    state = random.getstate()
    compare({"a": lambda: None, "b": lambda: None}, max_time_s=0.05, min_runs=3, max_runs=3)
    assert random.getstate() == state


def test_a_steady_factor_is_found_exactly():
    found, _ = run({"eager": [2.0], "compiled": [1.0]})
    (ratio,) = found.ratios
    assert (ratio.ratio, ratio.low, ratio.high, ratio.verdict) == (0.5, 0.5, 0.5, "faster")
    assert found.winner == "compiled"
    assert str(found).endswith(
        "compiled takes 0.500 (0.500 .. 0.500) of the time of eager: faster\ncompiled is faster than every other"
    )


def test_equal_functions_have_no_winner():
    found, _ = run({"a": [1.0], "b": [1.0]})
    assert found.winner is None
    assert "no winner" in str(found)


def test_a_difference_below_the_margin_is_none():
    assert run({"a": [1.0], "b": [1.005]})[0].winner is None
    assert run({"a": [1.0], "b": [1.005]}, margin=0.001)[0].winner == "a"


def test_a_difference_beyond_the_noise_is_not_called_noise():
    """The interval excludes 1, and reaches into the margin: more time would tell."""
    ratio = Ratio("b", "a", 1.068, 1.006, 1.128, confidence=0.99, required=0.99, margin=0.01)
    assert ratio.verdict == "undecided"
    assert ratio.said == "beyond the noise, but less than 1.0% can't be excluded: measure for longer"
    assert replace(ratio, low=0.997).said == "within the noise"
    assert "no winner: beyond the noise" in str(Comparison((), (ratio,), None))


def test_a_machine_that_slows_down_cancels_in_the_ratio():
    slowing = [1.0] * 11 + [1.02**i for i in range(300)]
    found, _ = run({"a": slowing, "b": [1.1 * t for t in slowing]}, max_runs=100)
    assert found.ratios[0].low == pytest.approx(found.ratios[0].high)
    assert found.ratios[0].ratio == pytest.approx(1.1)
    assert found.winner == "a"
    assert "still-rising" in [w.code for w in found["a"].warnings]


def test_one_round_decides_nothing():
    found, clock = run({"a": [50.0], "b": [80.0]}, max_time_s=1.0)
    assert (found["a"].n, "".join(clock.calls)) == (1, "aabb")
    assert found.winner is None
    assert "too few rounds" in str(found)


def test_the_winner_must_beat_every_other():
    assert run({"slow": [3.0], "fast": [1.0], "as fast": [1.0]})[0].winner is None
    assert run({"slow": [3.0], "fast": [1.0], "middle": [2.0]})[0].winner == "fast"


def test_intervals_widen_with_the_number_of_comparisons():
    two, _ = run({"a": [1.0], "b": [2.0]})
    four, _ = run({"a": [1.0], "b": [2.0], "c": [3.0], "d": [4.0]})
    assert two.ratios[0].required == 0.99
    assert four.ratios[0].required == pytest.approx(1 - 0.01 / 6)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_noise_alone_has_no_winner(seed):
    rng = np.random.default_rng(seed)
    a, b = (np.concatenate([np.ones(11), rng.lognormal(0, 0.2, 400)]).tolist() for _ in "ab")
    found, _ = run({"a": a, "b": b}, max_runs=200)
    assert found["a"].n >= 100
    assert found.winner is None or abs(found.ratios[0].ratio - 1) < 0.15
    assert found.ratios[0].low <= found.ratios[0].ratio <= found.ratios[0].high


def test_result_is_plain_data():
    data = json.loads(json.dumps(run({"a": [1.0], "b": [2.0]})[0].to_dict()))
    assert data["winner"] == "a"
    assert data["ratios"][0]["verdict"] == "slower"
    assert [m["name"] for m in data["measurements"]] == ["a", "b"]


def test_misuse_is_explained():
    with pytest.raises(ArgumentError, match="two functions at least, got 1"):
        compare({"a": abs})
    with pytest.raises(ArgumentTypeError, match="must be a dict of names and functions, got list"):
        compare([abs, abs])
    with pytest.raises(ArgumentTypeError, match="b must be a function, got int"):
        compare({"a": lambda: 1, "b": 3})
    with pytest.raises(ArgumentError, match=r"margin must lie in \[0, 1\), got 1"):
        compare({"a": abs, "b": abs}, margin=1)
