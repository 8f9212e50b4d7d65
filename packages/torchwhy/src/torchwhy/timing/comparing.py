"""`compare`: time several functions alternately, and decide which is faster."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

from torchwhy.errors import ArgumentError, ArgumentTypeError
from torchwhy.timing.comparison import Comparison, Ratio, paired_ratio
from torchwhy.timing.contender import Contender
from torchwhy.timing.machine import CpuTimes, read_cpu_times
from torchwhy.timing.measurement import Measurement
from torchwhy.timing.measuring import SHORTEST_S, WARMUP_SHARE, require_budget, warnings_about

__all__ = ["compare"]

CONFIDENCE = 0.99  # a false winner costs more than some rounds
LONGEST_RUN_S = 0.01  # a run is made longer, so that all make as many calls, up to this

_ORDER = random.Random()  # its own, so that the program's random numbers stay as they are


def compare(
    functions: Mapping[str, Callable[[], Any]],
    *,
    precision: float = 0.01,
    margin: float = 0.01,
    min_runs: int = 15,
    max_runs: int = 2000,
    max_time_s: float = 20.0,
    clock: Callable[[], float] = time.perf_counter,
    cpu_times: Callable[[], CpuTimes | None] = read_cpu_times,
    shuffle: Callable[[list[Any]], None] = _ORDER.shuffle,
) -> Comparison:
    """Time functions alternately, and name a winner only if the difference exceeds the noise.

    Each function is warmed up first. Every round then takes one run of each function, so that changes of the machine's
    speed affect all equally; ratios are computed within rounds. A run is affected by the caches that the previous
    function left, so the order is shuffled in each round, and this effect is part of the intervals. For the same reason
    functions of similar length have the same number of calls per run.

    A function wins if the interval of its ratio to *every* other function lies below 1 - margin. The intervals hold
    jointly with 99% confidence (Bonferroni correction over all pairs). They do not include differences between
    processes (memory layout, import order): repeat the comparison in fresh processes before trusting a few percent
    (Mytkowicz et al., ASPLOS 2009).

    Args:
        functions: at least two functions without arguments, by name; the first is the baseline.
        precision: target precision of the ratios to the baseline, in (0, 1).
        margin: smaller relative differences are ignored, in [0, 1).
        min_runs: minimum number of rounds, if `max_time_s` allows.
        max_runs: maximum number of rounds.
        max_time_s: maximum total time in seconds, without first calls. At least one round is taken.
        clock: returns seconds; replaceable for tests.
        cpu_times: returns the processors' counters; replaceable for tests.
        shuffle: shuffles the order of a round; replaceable for tests.

    Raises:
        ArgumentTypeError: not a mapping to functions.
        ArgumentError: fewer than two functions, or a number out of range.

    >>> import torch
    >>> x = torch.ones(1000)
    >>> c = compare({"once": lambda: x.sin(), "ten times": lambda: [x.sin() for _ in range(10)]}, max_time_s=1)
    >>> c.winner
    'once'
    """
    require_budget(precision, min_runs, max_runs, max_time_s)
    contenders = _contenders(functions, margin, clock)
    before = cpu_times()
    for contender in contenders:
        contender.warm_up(max_time_s * WARMUP_SHARE / len(contenders))
    _make_runs_alike(contenders)
    level = 1 - (1 - CONFIDENCE) / len(list(combinations(contenders, 2)))
    if _spent_s(contenders) >= max_time_s:
        for contender in contenders:
            contender.take_warm_up_as_run()
    check_at, turns = min_runs, list(contenders)
    while (rounds := len(contenders[0].times_s)) < max_runs and (spent_s := _spent_s(contenders)) < max_time_s:
        shuffle(turns)
        for contender in turns:
            contender.run()
        rounds += 1
        if rounds >= check_at and spent_s >= SHORTEST_S:
            if _known(_ratios([c.measurement() for c in contenders], level, margin), precision):
                break
            check_at = rounds + 1 + rounds // 5
    after = cpu_times()
    measurements = [c.measurement(warnings_about(c, before, after, max_time_s)) for c in contenders]
    return Comparison(tuple(measurements), _ratios(measurements, level, margin), _winner(measurements, level, margin))


def _contenders(
    functions: Mapping[str, Callable[[], Any]], margin: float, clock: Callable[[], float]
) -> list[Contender]:
    if not isinstance(functions, Mapping):
        raise ArgumentTypeError(f"functions must be a dict of names and functions, got {type(functions).__name__}")
    if len(functions) < 2:
        raise ArgumentError(f"compare needs two functions at least, got {len(functions)}; to time one, use measure")
    if not 0 <= margin < 1:
        raise ArgumentError(f"margin must lie in [0, 1), got {margin}")
    return [Contender(str(name), fn, clock) for name, fn in functions.items()]


def _spent_s(contenders: Sequence[Contender]) -> float:
    return sum(contender.spent_s for contender in contenders)


def _make_runs_alike(contenders: Sequence[Contender]) -> None:
    """Let all make as many calls in a run as the one that needs most: the first call of a run has cold caches."""
    most = max(contender.calls for contender in contenders)
    for contender in contenders:
        affordable = int(LONGEST_RUN_S / contender.call_s) if contender.call_s > 0 else most
        contender.calls = max(contender.calls, min(most, affordable))


def _ratios(measurements: Sequence[Measurement], level: float, margin: float) -> tuple[Ratio, ...]:
    return tuple(paired_ratio(m, measurements[0], level, margin) for m in measurements[1:])


def _known(ratios: Sequence[Ratio], precision: float) -> bool:
    """Whether every ratio's interval is narrow, and confident, enough."""
    return all(r.confidence >= r.required and r.high - r.low <= 2 * precision * r.ratio for r in ratios)


def _winner(measurements: Sequence[Measurement], level: float, margin: float) -> str | None:
    """Return the one that is faster than every other; None for a tie or noise."""
    fastest = min(measurements, key=lambda m: m.median_s)
    others = [m for m in measurements if m is not fastest]
    won = all(paired_ratio(fastest, other, level, margin).verdict == "faster" for other in others)
    return fastest.name if won else None
