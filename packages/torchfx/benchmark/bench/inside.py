"""Comparisons inside this process, for ratios that the way between processes would blur."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from torch.utils.benchmark import Timer
from torch.utils.benchmark.utils.common import set_torch_threads

from bench.timing import calls_per_turn, interleave, spread

__all__ = ["alternate", "compare"]

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


def alternate(works: Mapping[str, Work], rounds: int, threads: int) -> dict[str, list[float]]:
    """Time works in single calls in turn, each finding the caches as the other works have left them.

    A round is as many calls of each as fill a turn of the slowest, and its value their median.
    """
    times: dict[str, list[float]] = {name: [] for name in works}
    with set_torch_threads(threads):
        calls = max(3, calls_per_turn(max(_call(work) for work in works.values())))
        for _ in range(rounds):
            round_times: dict[str, list[float]] = {name: [] for name in works}
            for _ in range(calls):
                for name, work in works.items():
                    round_times[name].append(_call(work))
            for name, values in round_times.items():
                times[name].append(spread(values).median)
    return times


def _call(work: Work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
