"""Interleaving and its statistics, on a clock that the test turns."""

import pytest

from bench.timing import MIN_ROUNDS, TURN_S, Spread, calls_per_turn, interleave, ratio, spread


class Clock:
    """Stands still until told to go on."""

    def __init__(self):
        self.now = 0.0
        self.order = []

    def __call__(self):
        return self.now

    def turn(self, name, durations):
        durations = iter(durations)

        def take():
            self.order.append(name)
            took = next(durations)
            self.now += took
            return took

        return take

    def pause(self, seconds):
        self.order.append("pause")
        self.now += seconds


def test_contenders_take_turns():
    clock = Clock()
    turns = {"a": clock.turn("a", [1.0, 2.0]), "b": clock.turn("b", [3.0, 4.0])}
    assert interleave(turns, 2, clock=clock, pause=clock.pause) == {"a": [1.0, 2.0], "b": [3.0, 4.0]}
    assert clock.order == ["pause", "a", "pause", "b"] * 2


def test_the_limit_ends_rounds_but_not_before_the_third():
    clock = Clock()
    times = interleave({"a": clock.turn("a", [1.0] * 50)}, 50, limit_s=10, clock=clock, pause=clock.pause)
    assert len(times["a"]) == 10
    times = interleave({"a": clock.turn("a", [99.0] * 50)}, 50, limit_s=10, clock=clock, pause=clock.pause)
    assert len(times["a"]) == MIN_ROUNDS
    times = interleave({"a": clock.turn("a", [99.0])}, 1, limit_s=10, clock=clock, pause=clock.pause)
    assert len(times["a"]) == 1


def test_spread_is_median_and_quartiles():
    assert spread([5.0, 1.0, 2.0, 3.0, 4.0]) == Spread(3.0, 2.0, 4.0, 5)
    assert spread([7.0]) == Spread(7.0, 7.0, 7.0, 1)


def test_ratios_are_taken_round_by_round():
    # A machine that is three times slower in the second round changes the times, not the ratio.
    assert ratio([10.0, 30.0, 10.0], [2.0, 6.0, 2.0]) == Spread(5.0, 5.0, 5.0, 3)


@pytest.mark.parametrize(("call_s", "calls"), [(1.0, 1), (TURN_S, 1), (TURN_S / 4, 4), (0.0, 10_000_000)])
def test_short_calls_are_repeated_to_fill_a_turn(call_s, calls):
    assert calls_per_turn(call_s) == calls
