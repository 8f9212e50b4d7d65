"""Comparisons inside this process, for ratios that the way between processes would blur."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from torch.utils.benchmark import Timer

from torchfx.bench.timing import calls_per_turn, interleave

__all__ = ["compare"]

Work = Callable[[], Any]


def compare(works: Mapping[str, Work], rounds: int, threads: int) -> dict[str, list[float]]:
    """Time works in interleaved rounds; return seconds per call by name, one value a round.

    `torch.utils.benchmark.Timer` sets the threads, warms up before each turn and waits for a GPU.
    """
    turns = {}
    for name, work in works.items():
        timer = Timer("work()", globals={"work": work}, num_threads=threads)
        turns[name] = partial(_take_turn, timer, calls_per_turn(timer.timeit(1).mean))
    return interleave(turns, rounds)


def _take_turn(timer: Timer, calls: int) -> float:
    return timer.timeit(calls).mean
