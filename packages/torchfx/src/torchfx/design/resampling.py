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

__all__ = ["PASSBAND", "QUALITIES", "kaiser_reach", "low_pass_phases", "resampling_reach", "resampling_taps"]

QUALITIES = {"HQ": 126.0, "VHQ": 176.0}
"""Attenuation that the window is designed for, dB, by soxr's names; measured images and aliases are 1 dB higher."""

PASSBAND = 0.913
"""The end of the pass band, as a part of half the lower rate; the stop band begins at half the lower rate."""

CACHED, SHORT, SHORT_CACHED = 16, 25_000, 128
"""How many low-passes are kept, and how many that reach up to so far: 0.4 MB each at most, many for drawn speeds."""


def resampling_reach(up: int, down: int, quality: str) -> int:
    """Return how far the low-pass reaches to each side, in steps of the signal's sampling interval over `up`."""
    return kaiser_reach((1 - PASSBAND) / max(up, down), QUALITIES[quality])


def kaiser_reach(transition: float, attenuation: float) -> int:
    """Return how many taps a windowed sinc has on each side of its middle, at most.

    By Kaiser's formula for the order of a window design (A. V. Oppenheim, R. W. Schafer, Discrete-Time Signal
    Processing, 7.6).

    Args:
        transition: width of the transition band, as a part of half the rate of the taps.
        attenuation: in the stop band, dB.
    """
    return math.ceil((attenuation - 7.95) / (2.285 * math.pi * transition) / 2)


def resampling_taps(up: int, down: int, quality: str) -> Tensor:
    """Design a low-pass for resampling by up/down, a windowed sinc with a Kaiser window.

    Args:
        up, down: the ratio of the rates in lowest terms, each >= 1.
        quality: "HQ" or "VHQ".

    Returns:
        float64, (up, n): tap k of phase p is tap k up + p of the low-pass at `up` times the signal's rate, whose middle
        is tap `resampling_reach(...)`. Shared: don't write to it.
    """
    reach = resampling_reach(up, down, quality)
    return low_pass_phases(up, (1 + PASSBAND) / 2 / max(up, down), reach, QUALITIES[quality])


@design_operator(
    "resampling_low_pass(int up, float cutoff, int reach, float attenuation) -> Tensor",
    shape=lambda up, cutoff, reach, attenuation: (up, 2 * reach // up + 1),
)
def low_pass_phases(up: int, cutoff: float, reach: int, attenuation: float) -> Coefficients:
    """Design a windowed sinc and sort its taps into phases.

    Args:
        up: how many phases, >= 1.
        cutoff: middle of the transition band, as a part of half the rate of the taps.
        reach: taps on each side of the middle, `kaiser_reach`.
        attenuation: in the stop band, dB.

    Returns:
        float64, (up, n), with the sum `up`.
    """
    return (_kept_short if reach <= SHORT else _kept)(up, cutoff, reach, attenuation)


def _designed(up: int, cutoff: float, reach: int, attenuation: float) -> Coefficients:
    from scipy import special

    steps = np.arange(-reach, 2 * reach // up * up + up - reach)
    inside = np.clip(1 - (steps / (reach + 1)) ** 2, 0, None)
    beta = 0.1102 * (attenuation - 8.7)
    taps = np.sinc(steps * cutoff) * special.i0(beta * np.sqrt(inside)) * (inside > 0)
    phases = (taps * (up / taps.sum())).reshape(-1, up).T
    return np.ascontiguousarray(phases)


_kept, _kept_short = lru_cache(CACHED)(_designed), lru_cache(SHORT_CACHED)(_designed)
