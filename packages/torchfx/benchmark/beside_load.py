#!/usr/bin/env python3
"""Time filtering on one thread and on two while other processes keep the cores busy.

python benchmark/beside_load.py

A competitor is a process that never sleeps: none, one that the system may put on any core, or one on each core. Calls
on one thread and on two take turns. Two threads may take at most 1.3 times what one takes, in the median and in the
99th percentile (exit status 1 when they take more beside a competitor).
"""

import argparse
import os
import signal
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

import torchfx as fx
from torchfx import filter

FS = 44_100
THREADS = (1, 2)
MOST = 1.3  # times one thread's time
CHAIN = filter.HiButterworth(1000) | filter.LoButterworth(5000) | filter.HiChebyshev1(1500) | filter.LoChebyshev1(1800)
CORES = sorted(os.sched_getaffinity(0))
COMPETITORS: dict[str, list[list[int]]] = {"none": [], "one": [CORES], "one on each core": [[core] for core in CORES]}


@contextmanager
def competitors(places: list[list[int]]) -> Iterator[None]:
    """Keep cores busy: one process for each list of cores that it may run on."""
    parent, started = os.getpid(), []
    try:
        for cores in places:
            process = os.fork()
            if process == 0:
                os.sched_setaffinity(0, cores)
                while os.getppid() == parent:
                    sum(range(100_000))
                os._exit(0)
            started.append(process)
        yield
    finally:
        for process in started:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)


def times(work: Callable[[], object], rounds: int) -> dict[int, list[float]]:
    """Return the seconds of each call, by the number of threads; both take turns."""
    found: dict[int, list[float]] = {threads: [] for threads in THREADS}
    for _ in range(rounds):
        for threads in THREADS:
            torch.set_num_threads(threads)
            start = time.perf_counter()
            work()
            found[threads].append(time.perf_counter() - start)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=400, help="calls on each number of threads")
    parser.add_argument("--seconds", type=float, nargs="+", default=[5, 60], help="lengths of the mono signals")
    options = parser.parse_args()
    kept = True
    print(f"{CHAIN}\nns a sample: median and 99th percentile of {options.rounds} calls")
    for seconds in options.seconds:
        wave = fx.Wave(torch.randn(1, round(seconds * FS)), FS)
        results = []
        for threads in THREADS:
            torch.set_num_threads(threads)
            results.append((wave | CHAIN).ys)
        torch.testing.assert_close(*results, rtol=0, atol=2e-7 * float(results[0].abs().max()))
        for name, places in COMPETITORS.items():
            with competitors(places):
                time.sleep(0.1 * bool(places))  # until they are running
                found = times(lambda wave=wave: wave | CHAIN, options.rounds)
            ns = {
                threads: [1e9 * quantile / len(wave) for quantile in (statistics.median(each), percentile_99(each))]
                for threads, each in found.items()
            }
            ratios = [two / one for one, two in zip(ns[1], ns[2], strict=True)]
            kept = kept and (not places or max(ratios) <= MOST)
            print(
                f"{seconds:g} s, competitors: {name:17} "
                + "  ".join(f"{threads} threads: {median:5.2f} {p99:5.2f}" for threads, (median, p99) in ns.items())
                + f"  ratio: {ratios[0]:.2f} {ratios[1]:.2f}"
            )
    return 0 if kept else 1


def percentile_99(values: list[float]) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[-1]


if __name__ == "__main__":
    sys.exit(main())
