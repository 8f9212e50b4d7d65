"""Test signals: Gaussian noise in float32, each channel with a peak of 1, made in blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["fill_with_noise", "noise", "write_noise"]

BLOCK = 1 << 20  # samples made at a time: no copy of the whole signal ever exists, in any precision


def fill_with_noise(x: npt.NDArray[np.float32], seed: int = 0) -> None:
    """Fill (channels, time) with noise; the same seed and shape give the same samples."""
    generator = np.random.default_rng(seed)
    for channel in x:
        peak = np.float32(0)
        for start in range(0, len(channel), BLOCK):
            block = channel[start : start + BLOCK]
            block[:] = generator.standard_normal(len(block), dtype=np.float32)
            peak = max(peak, np.abs(block).max())
        for start in range(0, len(channel), BLOCK):
            channel[start : start + BLOCK] /= peak


def noise(channels: int, samples: int, seed: int = 0) -> npt.NDArray[np.float32]:
    """Return noise (channels, samples) in memory.

    Examples:
        >>> x = noise(2, 1000)
        >>> x.dtype.name, abs(x).max(axis=1).tolist()
        ('float32', [1.0, 1.0])
    """
    x = np.empty((channels, samples), np.float32)
    fill_with_noise(x, seed)
    return x


def write_noise(path: Path, channels: int, samples: int, seed: int = 0) -> npt.NDArray[np.float32]:
    """Write noise (channels, samples) to a NumPy file, which many processes can map, and return it mapped."""
    x: np.memmap[Any, np.dtype[np.float32]] = np.lib.format.open_memmap(
        path, mode="w+", dtype=np.float32, shape=(channels, samples)
    )
    fill_with_noise(x, seed)
    x.flush()
    return x
