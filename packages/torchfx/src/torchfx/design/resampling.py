"""The low-pass between two sample rates, as the phases that the resampling operator takes."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from torchfx.design.operator import design_operator

if TYPE_CHECKING:
    from torchfx.design.operator import Coefficients

__all__ = ["QUALITIES", "resampling_reach", "resampling_taps"]

QUALITIES = {"HQ": 126.0, "VHQ": 176.0}
"""What the window is designed for, dB, by the names soxr uses: measured, images and aliases are 1 dB less far down."""

PASSBAND = 0.913
"""Where the pass band ends, as a part of half the lower rate; the stop band begins at half the lower rate."""

CACHED, FEW_PHASES, FEW_CACHED = 16, 256, 128
"""How many low-passes are kept, and how many of those with few phases: 0.4 MB each at most, many for drawn speeds."""


def resampling_reach(up: int, down: int, quality: str) -> int:
    """Return how far the low-pass reaches to each side, in steps of the signal's sampling interval over `up`.

    By Kaiser's formula for the order of a window design (A. V. Oppenheim, R. W. Schafer, Discrete-Time Signal
    Processing, 7.6).
    """
    transition = math.pi * (1 - PASSBAND) / max(up, down)
    return math.ceil((QUALITIES[quality] - 7.95) / (2.285 * transition) / 2)


def resampling_taps(up: int, down: int, quality: str) -> Tensor:
    """Design a low-pass for resampling by up/down, a windowed sinc with a Kaiser window.

    Args:
        up, down: the ratio of the rates in lowest terms, each >= 1.
        quality: "HQ" or "VHQ".

    Returns:
        float64, (up, n): tap k of phase p is tap k up + p of the low-pass at `up` times the signal's rate, whose middle
        is tap `resampling_reach(...)`. Shared: don't write to it.
    """
    return _taps(up, down, quality)


@design_operator(
    "resampling_taps(int up, int down, str quality) -> Tensor",
    shape=lambda up, down, quality: (up, 2 * resampling_reach(up, down, quality) // up + 1),
)
def _taps(up: int, down: int, quality: str) -> Coefficients:
    return (_kept_long if max(up, down) <= FEW_PHASES else _kept)(up, down, quality)


def _designed(up: int, down: int, quality: str) -> Coefficients:
    from scipy import special

    reach = resampling_reach(up, down, quality)
    highest = max(up, down)
    offsets = np.arange(-reach, 2 * reach // up * up + up - reach) / highest
    inside = np.clip(1 - (offsets * highest / (reach + 1)) ** 2, 0, None)
    beta = 0.1102 * (QUALITIES[quality] - 8.7)
    middle = (1 + PASSBAND) / 2  # of the transition band
    taps = np.sinc(offsets * middle) * special.i0(beta * np.sqrt(inside)) * (inside > 0)
    phases = (taps * (up / taps.sum())).reshape(-1, up).T
    return np.ascontiguousarray(phases)


_kept, _kept_long = lru_cache(CACHED)(_designed), lru_cache(FEW_CACHED)(_designed)
