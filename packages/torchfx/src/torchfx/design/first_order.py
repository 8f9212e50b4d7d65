"""Filters of one pole: the RC low-pass and the DC blocker."""

from __future__ import annotations

import math

from torch import Tensor

from torchfx.checks import sample_rate
from torchfx.design.biquad import checked, section
from torchfx.parameters import Value, frequency, named

__all__ = ["dc_blocker", "one_pole"]

CUTOFF = named("cutoff", frequency())


def one_pole(cutoff: Value, fs: float) -> Tensor:
    """Design y[n] = (1 - p) x[n] + p y[n-1] with p = exp(-2 pi cutoff / fs), which decays like the analogue RC filter.

    Args:
        cutoff: Hz, in (0, fs/2); a tensor (...) gives a filter for each of its values, differentiably.
        fs: sample rate, Hz.

    Returns:
        float64, (..., 1, 6).
    """
    rate = sample_rate(fs)
    f = checked(CUTOFF, cutoff, rate)
    exponent = -2 * math.pi * f / rate
    rest = -(exponent.expm1() if isinstance(exponent, Tensor) else math.expm1(exponent))
    return section((rest, 0.0, 0.0, 1.0, rest - 1, 0.0))


def dc_blocker(cutoff: Value, fs: float) -> Tensor:
    """Design y[n] = g (x[n] - x[n-1]) + r y[n-1], -3 dB at the cutoff, gain 1 at fs/2.

    Args:
        cutoff: Hz, in (0, fs/2); a tensor (...) gives a filter for each of its values, differentiably.
        fs: sample rate, Hz.

    Returns:
        float64, (..., 1, 6), as `scipy.signal.butter(1, cutoff, "highpass", fs=fs, output="sos")`.
    """
    rate = sample_rate(fs)
    angle = math.pi * checked(CUTOFF, cutoff, rate) / rate
    t = angle.tan() if isinstance(angle, Tensor) else math.tan(angle)
    gain = 1 / (1 + t)
    return section((gain, -gain, 0.0, 1.0, (t - 1) * gain, 0.0))
