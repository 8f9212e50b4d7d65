#!/usr/bin/env python3
"""Run a live chain in real time beside a busy Python thread: no deadline may be missed, and memory may not grow.

An equaliser of 8 sections, a compressor and a reverberator on stereo blocks of 64 samples at 48 kHz.

python benchmark/live_soak.py --seconds 600
"""

import argparse
import sys
import threading
from array import array
from collections.abc import Iterator
from pathlib import Path

import torch

import torchfx as fx

FS, BLOCK = 48_000, 64


def private_bytes() -> int:
    """Return the resident memory that is no file's: pages of libraries come as code first runs, 16 at a time."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("RssAnon:")[2].split(maxsplit=1)[0]) * 1024


def busy(stop: threading.Event) -> None:
    while not stop.is_set():
        sum(i * i for i in range(10_000))


def seconds_of_noise(count: int) -> Iterator[torch.Tensor]:
    noise = 0.2 * torch.randn(2, FS)
    for _ in range(count):
        yield noise


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--plot", help="write the histogram of call times as a picture")
    options = parser.parse_args()
    bands = [fx.filter.Peaking(100 * 2**i, 1.0, 3.0) for i in range(8)]
    chain = fx.FilterChain(*bands, fx.effect.Compressor(-30), fx.effect.Reverb())
    clock = fx.realtime.FileClock(seconds_of_noise(options.seconds), lambda block: None, real_time=True)
    stop = threading.Event()
    thread = threading.Thread(target=busy, args=(stop,))
    thread.start()
    try:
        with fx.realtime.RealtimeProcessor(chain, clock, fx.realtime.RealtimeConfig(FS, BLOCK)) as live:
            memory, count = array("q", [0]) * (2 * options.seconds + 60), 0  # room of its own, so that it does not grow
            while not live.wait(1.0):
                memory[count] = private_bytes()
                count += 1
            stats = live.stats()
            if options.plot:
                live.plot(options.plot)
    finally:
        stop.set()
        thread.join()
    settled = memory[min(60, count // 2) : count] or [0]
    print(f"real-time priority: {stats.has_priority}; {stats.blocks} blocks of {stats.block_us:.0f} us")
    print(f"p50 {stats.p50_us:.0f}, p99 {stats.p99_us:.0f}, p99.9 {stats.p999_us:.0f}, longest {stats.max_us:.0f} us")
    print(f"deadline misses {stats.deadline_misses}, xruns {stats.xruns}, overloads {stats.sheds}")
    print(f"private resident memory, settled: {settled[0]} bytes, at the end: {settled[-1]}")
    good = stats.deadline_misses == 0 and stats.p999_us < stats.block_us / 2 and settled[-1] <= settled[0]
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
