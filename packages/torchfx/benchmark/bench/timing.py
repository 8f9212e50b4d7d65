"""Rounds in which the processes of contenders take turns, A B A B, and medians, quartiles and ratios of times.

Works of this process are timed by `bench.inside`; a contender of another Python times its own.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from torchwhy.timing.quantiles import quantile

__all__ = ["Spread", "calls_per_turn", "interleave", "ratio", "spread"]

TURN_S = 0.01
"""A turn lasts at least this long where the work is short: calls are repeated, and their mean counts once."""

PAUSE_S = 0.005
"""Pause before each turn, in which the threads of the one before go to sleep (OpenMP's wait for work for a while)."""

MIN_ROUNDS = 3


@dataclass(frozen=True)
class Spread:
    """Median and quartiles of repeated measurements."""

    median: float
    low: float
    high: float
    count: int


def spread(values: Sequence[float]) -> Spread:
    """Summarise measurements.

    Examples:
        >>> spread([1.0, 2.0, 3.0, 4.0, 100.0])
        Spread(median=3.0, low=2.0, high=4.0, count=5)
    """
    return Spread(quantile(values, 0.5), quantile(values, 0.25), quantile(values, 0.75), len(values))


def ratio(slower: Sequence[float], faster: Sequence[float]) -> Spread:
    """Summarise how many times longer one contender took than another, round by round."""
    return spread([a / b for a, b in zip(slower, faster, strict=True)])


def calls_per_turn(call_s: float) -> int:
    """Return how many calls of this duration fill a turn."""
    return max(1, math.ceil(TURN_S / max(call_s, 1e-9)))


def interleave(
    turns: Mapping[str, Callable[[], float]],
    rounds: int,
    limit_s: float = math.inf,
    clock: Callable[[], float] = time.perf_counter,
    pause: Callable[[float], None] = time.sleep,
) -> dict[str, list[float]]:
    """Let every contender have one turn a round.

    Args:
        turns: by name, what runs a turn and returns the seconds it took.
        rounds: how many.
        limit_s: start no further round after this many seconds, three being the least.
        clock: returns the seconds for the limit.
        pause: waits before each turn.

    Returns:
        The turns' seconds by name, as many for each, in order of the rounds.
    """
    times: dict[str, list[float]] = {name: [] for name in turns}
    start = clock()
    for done in range(rounds):
        if done >= MIN_ROUNDS and clock() - start >= limit_s:
            break
        for name, turn in turns.items():
            pause(PAUSE_S)
            times[name].append(turn())
    return times
