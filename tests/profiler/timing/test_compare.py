"""`compare` under a mock clock: turns, ratios, and no winner without evidence."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mock_clock import MockClock

from torchfx.errors import ArgumentError, ArgumentTypeError
from torchfx.profiler import compare


def run(durations, **options):
    clock = MockClock()
    functions = {name: clock.taking(times, name) for name, times in durations.items()}
    return compare(functions, clock=clock, cpu_times=lambda: None, **{"max_time_s": 1e6, **options}), clock


def test_functions_take_turns_after_each_has_warmed_up():
    found, clock = run({"a": [1.0], "b": [2.0]})
    assert "".join(clock.calls) == "a" * 11 + "b" * 11 + "ab" * found["a"].n
    assert found["a"].n == found["b"].n == 15


def test_a_steady_factor_is_found_exactly():
    found, _ = run({"eager": [2.0], "compiled": [1.0]})
    (ratio,) = found.ratios
    assert (ratio.ratio, ratio.low, ratio.high, ratio.verdict) == (0.5, 0.5, 0.5, "faster")
    assert found.winner == "compiled"
    assert str(found).endswith("compiled takes 0.500 (0.500 .. 0.500) of the time of eager: faster\nwinner: compiled")


def test_equal_functions_have_no_winner():
    found, _ = run({"a": [1.0], "b": [1.0]})
    assert found.winner is None
    assert "no winner" in str(found)


def test_a_difference_below_the_margin_is_none():
    assert run({"a": [1.0], "b": [1.005]})[0].winner is None
    assert run({"a": [1.0], "b": [1.005]}, margin=0.001)[0].winner == "a"


def test_a_machine_that_slows_down_cancels_in_the_ratio():
    slowing = [1.0] * 11 + [1.02**i for i in range(300)]
    found, _ = run({"a": slowing, "b": [1.1 * t for t in slowing]}, max_runs=100)
    assert found.ratios[0].low == pytest.approx(found.ratios[0].high)
    assert found.ratios[0].ratio == pytest.approx(1.1)
    assert found.winner == "a"
    assert "still-rising" in [w.code for w in found["a"].warnings]


def test_three_rounds_decide_nothing():
    found, _ = run({"a": [50.0], "b": [80.0]}, max_time_s=1.0)
    assert found["a"].n == 3
    assert found.winner is None
    assert "too few rounds" in str(found)


def test_the_winner_must_beat_every_other():
    assert run({"slow": [3.0], "fast": [1.0], "as fast": [1.0]})[0].winner is None
    assert run({"slow": [3.0], "fast": [1.0], "middle": [2.0]})[0].winner == "fast"


def test_intervals_widen_with_the_number_of_comparisons():
    two, _ = run({"a": [1.0], "b": [2.0]})
    four, _ = run({"a": [1.0], "b": [2.0], "c": [3.0], "d": [4.0]})
    assert two.ratios[0].required == 0.95
    assert four.ratios[0].required == pytest.approx(1 - 0.05 / 6)


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
