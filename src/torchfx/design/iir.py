"""Butterworth and Chebyshev type I designs as second-order sections."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

from torchfx.checks import finite_number, positive_number, sample_rate, whole_number
from torchfx.errors import ArgumentError

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["BandType", "butterworth", "chebyshev1", "check_cutoff"]

BandType = Literal["lowpass", "highpass"]
CACHED = 1024  # designs remembered; one takes about half a millisecond and a few hundred bytes


def butterworth(cutoff: float, order: int, fs: float, btype: BandType) -> Tensor:
    """Design a Butterworth filter: flat passband, -3 dB at the cutoff.

    Args:
        cutoff: Hz, in (0, fs/2).
        order: >= 1.
        fs: sample rate, Hz.
        btype: "lowpass" or "highpass".

    Returns:
        float64, (ceil(order / 2), 6), as `scipy.signal.butter(..., output="sos")`. Shared: don't write to it.
    """
    return _butterworth(check_cutoff(cutoff, fs), whole_number("order", order, 1), float(fs), btype)


def chebyshev1(cutoff: float, order: int, ripple: float, fs: float, btype: BandType) -> Tensor:
    """Design a Chebyshev type I filter: steeper, with `ripple` dB of it in the passband, -ripple dB at the cutoff.

    Args:
        cutoff: Hz, in (0, fs/2).
        order: >= 1.
        ripple: dB, > 0.
        fs: sample rate, Hz.
        btype: "lowpass" or "highpass".

    Returns:
        float64, (ceil(order / 2), 6), as `scipy.signal.cheby1(..., output="sos")`. Shared: don't write to it.
    """
    order, ripple = whole_number("order", order, 1), positive_number("ripple", ripple, "dB")
    return _chebyshev1(check_cutoff(cutoff, fs), order, ripple, float(fs), btype)


def check_cutoff(cutoff: float, fs: float | None) -> float:
    """Return the cutoff as a float, or raise unless it lies in (0, fs/2) Hz (in (0, inf) while fs is unknown)."""
    value = finite_number("cutoff", cutoff, "Hz")
    if fs is None:
        if value <= 0:
            raise ArgumentError(f"cutoff must lie in (0, fs/2) Hz, got {value:g}")
        return value
    nyquist = sample_rate(fs) / 2
    if not 0 < value < nyquist:
        raise ArgumentError(f"cutoff must lie in (0, fs/2) = (0, {nyquist:g}) Hz, got {value:g}")
    return value


@lru_cache(CACHED)
def _butterworth(cutoff: float, order: int, fs: float, btype: BandType) -> Tensor:
    from scipy import signal

    return _usable(signal.butter(order, cutoff, btype, fs=fs, output="sos"), cutoff, order, fs)


@lru_cache(CACHED)
def _chebyshev1(cutoff: float, order: int, ripple: float, fs: float, btype: BandType) -> Tensor:
    from scipy import signal

    return _usable(signal.cheby1(order, ripple, cutoff, btype, fs=fs, output="sos"), cutoff, order, fs)


def _usable(sos: npt.NDArray[Any], cutoff: float, order: int, fs: float) -> Tensor:
    """Return the design, or raise where float64 cannot hold it: poles that round onto the unit circle, no gain left."""
    rows = torch.tensor(sos, dtype=torch.float64)
    a1, a2 = rows[:, 4], rows[:, 5]
    stable = bool(((a2.abs() < 1) & (a1.abs() < 1 + a2)).all())
    if not (stable and bool(torch.isfinite(rows).all()) and bool(rows[:, :3].any(1).all())):
        raise ArgumentError(
            f"cutoff {cutoff:g} Hz and order {order} at fs {fs:g} Hz make a filter that float64 cannot hold; "
            f"raise the cutoff, or lower the order or the sample rate"
        )
    return rows
