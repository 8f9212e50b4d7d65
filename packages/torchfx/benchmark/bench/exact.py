"""The truth a contender must reproduce before it is timed: SciPy in float64, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.chains import Chain
from bench.resampling import Resampling

__all__ = ["BOUND", "deviation", "exact_blocks"]

BOUND = 2e-7
"""Largest deviation of an exact contender, relative to the true result's peak: float32's rounding is 6e-8."""

BLOCK = 1 << 20

Block = tuple[int, int, npt.NDArray[np.float64]]


def exact_blocks(chain: Chain, x: npt.NDArray[np.float32]) -> Iterator[Block]:
    """Yield (channel, start, samples) of the chain's true output for a signal (channels, time)."""
    sos, taps = chain.sos(), chain.taps()
    for channel, signal in enumerate(x):
        if sos is not None:
            yield from _recursive(sos[channel] if sos.ndim == 3 else sos, signal, channel)
        elif taps is not None:
            yield from _finite(taps, signal, channel)


def _recursive(sos: npt.NDArray[np.float64], x: npt.NDArray[np.float32], channel: int) -> Iterator[Block]:
    from scipy.signal import sosfilt

    state = np.zeros((len(sos), 2))
    for start in range(0, len(x), BLOCK):
        y, state = sosfilt(sos, x[start : start + BLOCK].astype(np.float64), zi=state)
        yield channel, start, y


def _finite(taps: npt.NDArray[np.float64], x: npt.NDArray[np.float32], channel: int) -> Iterator[Block]:
    from scipy.signal import oaconvolve

    history = len(taps) - 1
    for start in range(0, len(x), BLOCK):
        before = max(0, start - history)
        stretch = x[before : start + BLOCK].astype(np.float64)
        yield channel, start, oaconvolve(stretch, taps)[start - before : len(stretch)]


def deviation(chain: Chain, x: npt.NDArray[np.float32], result: Callable[[int, int, int], npt.NDArray[Any]]) -> float:
    """Return how far a result is from the truth: the largest difference relative to the truth's peak.

    Args:
        chain: what was run.
        x: its input, (channels, time).
        result: returns samples start to stop of one channel of the output.

    Returns:
        0 for no difference, infinity for a result that is not finite or has the wrong length.
    """
    largest, peak = 0.0, 0.0
    blocks = chain.exact_blocks(x) if isinstance(chain, Resampling) else exact_blocks(chain, x)
    for channel, start, exact in blocks:
        found = result(channel, start, start + len(exact))
        if found.shape != exact.shape or not np.isfinite(found).all():
            return float("inf")
        largest = max(largest, float(np.abs(found - exact).max()))
        peak = max(peak, float(np.abs(exact).max()))
    return largest / peak if peak else float(largest > 0)
