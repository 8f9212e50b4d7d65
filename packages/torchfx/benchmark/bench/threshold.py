"""The suite threshold: from which length on it pays to split a signal along time (torchfx._ops.splitting.THRESHOLD)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product

import torch

from bench import chains, signals
from bench.exact import BOUND, deviation
from bench.inside import compare
from bench.report import Refusal, ThresholdRow
from bench.timing import ratio, spread
from torchfx import _ops

__all__ = ["CHANNELS", "DTYPES", "LENGTHS", "MeasuredThreshold", "crossover", "run"]

CHAIN = chains.IIR
LENGTHS = tuple(2**i for i in range(6, 18))
CHANNELS = (1, 2, 8)
DTYPES = ("float32", "float64")
NEVER, ALWAYS = 1 << 60, 1


@dataclass(frozen=True)
class MeasuredThreshold:
    """What one signal size gave."""

    rows: list[ThresholdRow]
    refused: list[Refusal]


def run(
    lengths: Sequence[int], channels: Sequence[int], rounds: int, threads: int, device: str = "cpu"
) -> Iterator[MeasuredThreshold]:
    """Measure every size in one piece and split, and yield each one's row."""
    rows = CHAIN.sos()
    assert rows is not None
    sos = torch.tensor(rows, device=device)
    for dtype, count, length in product(DTYPES, channels, lengths):
        array = signals.noise(count, length)
        x = torch.from_numpy(array).to(device, getattr(torch, dtype))
        works = {
            "whole": partial(_ops.parallel_iir_forward, x, sos, threshold=NEVER),
            "split": partial(_ops.parallel_iir_forward, x, sos, threshold=ALWAYS),
        }
        refused = []
        for name, work in works.items():
            y = work()[0].cpu().numpy()
            off = deviation(CHAIN, array, lambda c, start, stop, y=y: y[c, start:stop])  # type: ignore[misc]
            if off > BOUND:
                refused.append(Refusal(name, device, f"{count} x {length}, {dtype}", f"off by {off:.1e} of the peak"))
        if refused:
            yield MeasuredThreshold([], refused)
            continue
        times = compare(works, rounds, threads)
        gain = ratio(times["whole"], times["split"])
        row = ThresholdRow(
            channels=count,
            samples=length,
            whole_us=spread(times["whole"]).median * 1e6,
            split_us=spread(times["split"]).median * 1e6,
            gain=gain.median,
            gain_low=gain.low,
            gain_high=gain.high,
            dtype=dtype,
        )
        yield MeasuredThreshold([row], [])


def crossover(rows: Sequence[ThresholdRow]) -> int | None:
    """Return the shortest length from which splitting is never slower, for rows of one kind.

    Examples:
        >>> gains = {64: 0.5, 128: 1.1, 256: 0.9, 512: 1.2, 1024: 1.9}
        >>> crossover([ThresholdRow(1, n, 1.0, 1.0, gain, gain, gain) for n, gain in gains.items()])
        512
    """
    shortest = None
    for row in sorted(rows, key=lambda row: -row.samples):
        if row.gain < 1:
            break
        shortest = row.samples
    return shortest
