#!/usr/bin/env python3
"""Cost of an idle `profile`: a loop whose steps only wait, with and without it, timed alternately.

    python benchmark/profile_overhead.py [--steps 2000] [--rounds 9] [--json]

Both loops must compute the same. `us/step` is the added time per step: the cost that decides, since it does not depend
on how long a step is.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path

import msgspec
import torch

import torchwhy
from torchwhy.capture import ProfileWarning


def plain(steps: int, x: torch.Tensor) -> tuple[float, torch.Tensor]:
    """Return seconds and the result of a loop of small steps."""
    began = time.perf_counter()
    for _ in range(steps):
        x = torch.tanh(x)
    return time.perf_counter() - began, x


def idle(steps: int, x: torch.Tensor, folder: Path) -> tuple[float, torch.Tensor]:
    """Return the same for the same loop in a `profile` that never leaves its wait."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ProfileWarning)  # that nothing was recorded is the point
        with torchwhy.profile(folder / "run", wait=steps + 1) as p:
            began = time.perf_counter()
            for _ in range(steps):
                x = torch.tanh(x)
                p.step()
            return time.perf_counter() - began, x


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--size", type=int, default=16, help="numbers per step")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()

    torch.set_num_threads(1)
    x = torch.linspace(-1, 1, options.size)
    times: dict[str, list[float]] = {"plain": [], "idle": []}
    with tempfile.TemporaryDirectory() as name:
        for turn in range(options.rounds + 1):
            without, expected = plain(options.steps, x)
            within, found = idle(options.steps, x, Path(name))
            if not torch.equal(expected, found):
                print("error: the loops computed different numbers", file=sys.stderr)
                return 1
            if turn:  # the first turn warms up
                times["plain"].append(without / options.steps * 1e6)
                times["idle"].append(within / options.steps * 1e6)
    rows = {
        way: {"median_us": statistics.median(found), "lowest_us": min(found), "highest_us": max(found)}
        for way, found in times.items()
    }
    added = statistics.median(b - a for a, b in zip(times["plain"], times["idle"], strict=True))
    if options.json:
        result = {"schema": 1, "steps": options.steps, "ways": rows, "added_us_per_step": added}
        print(msgspec.json.encode(result).decode())
        return 0
    for way, row in rows.items():
        spread = f"{row['lowest_us']:.2f} to {row['highest_us']:.2f}"
        print(f"{way:<6} {row['median_us']:8.2f} us/step  ({spread}, {options.rounds} rounds of {options.steps} steps)")
    print(f"added  {added:8.2f} us/step")
    return 0


if __name__ == "__main__":
    sys.exit(main())
