"""Butterworth and Chebyshev type I designs as second-order sections."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Literal, TypeGuard, get_args

import numpy as np
from torch import Tensor

from torchfx.checks import finite_number, positive_number, sample_rate, whole_number
from torchfx.design.differentiable import follow_cutoff
from torchfx.design.operator import design_operator
from torchfx.errors import ArgumentError

if TYPE_CHECKING:
    from torchfx.design.operator import Coefficients

__all__ = ["BandType", "butterworth", "chebyshev1", "check_cutoff", "check_ripple", "is_learned"]

BandType = Literal["lowpass", "highpass"]
MOST_RIPPLE = 3000  # dB
CACHED = 1024  # designs remembered; one takes about half a millisecond and a few hundred bytes


def butterworth(cutoff: float | Tensor, order: int, fs: float, btype: BandType) -> Tensor:
    """Design a Butterworth filter: flat passband, -3 dB at the cutoff.

    Args:
        cutoff: Hz, in (0, fs/2); a tensor that requires a gradient gets one.
        order: >= 1.
        fs: sample rate, Hz.
        btype: "lowpass" or "highpass".

    Returns:
        float64, (ceil(order / 2), 6), as `scipy.signal.butter(..., output="sos")`. Shared: don't write to it.
    """
    order = whole_number("order", order, 1)
    sos = _butterworth(check_cutoff(cutoff, fs), order, float(fs), check_band_type(btype))
    if not is_learned(cutoff):
        return sos
    from scipy.signal import buttap

    return follow_cutoff(cutoff, fs, btype == "highpass", buttap(order)[1], 1.0, sos)


def chebyshev1(cutoff: float | Tensor, order: int, ripple: float, fs: float, btype: BandType) -> Tensor:
    """Design a Chebyshev type I filter: steeper, with `ripple` dB of it in the passband, -ripple dB at the cutoff.

    Args:
        cutoff: Hz, in (0, fs/2); a tensor that requires a gradient gets one.
        order: >= 1.
        ripple: dB, > 0.
        fs: sample rate, Hz.
        btype: "lowpass" or "highpass".

    Returns:
        float64, (ceil(order / 2), 6), as `scipy.signal.cheby1(..., output="sos")`. Shared: don't write to it.
    """
    order, ripple = whole_number("order", order, 1), check_ripple(ripple)
    sos = _chebyshev1(check_cutoff(cutoff, fs), order, ripple, float(fs), check_band_type(btype))
    if not is_learned(cutoff):
        return sos
    from scipy.signal import cheb1ap

    gain = 1.0 if order % 2 else 10 ** (-ripple / 20)  # even orders start in a trough of the ripple
    return follow_cutoff(cutoff, fs, btype == "highpass", cheb1ap(order, ripple)[1], gain, sos)


def check_band_type(btype: BandType) -> BandType:
    """Return which side passes, or raise unless it is one of the two."""
    if btype not in get_args(BandType):
        raise ArgumentError(f"btype must be one of {', '.join(get_args(BandType))}, got {btype!r}")
    return btype


def check_ripple(ripple: float) -> float:
    """Return the ripple in dB as a float, or raise unless it lies in (0, 3000] dB, whose power float64 can hold."""
    value = positive_number("ripple", ripple, "dB")
    if value > MOST_RIPPLE:
        raise ArgumentError(f"ripple must lie in (0, {MOST_RIPPLE}] dB, got {value:g} dB")
    return value


def is_learned(cutoff: float | Tensor) -> TypeGuard[Tensor]:
    """Return whether gradients are to flow into a cutoff."""
    return isinstance(cutoff, Tensor) and cutoff.requires_grad


def check_cutoff(cutoff: float | Tensor, fs: float | None) -> float:
    """Return the cutoff as a float, or raise unless it lies in (0, fs/2) Hz (in (0, inf) while fs is unknown)."""
    value = finite_number("cutoff", cutoff.detach() if isinstance(cutoff, Tensor) else cutoff, "Hz")
    if fs is None:
        if value <= 0:
            raise ArgumentError(f"cutoff must lie in (0, fs/2) Hz, got {value:g}")
        return value
    nyquist = sample_rate(fs) / 2
    if not 0 < value < nyquist:
        raise ArgumentError(f"cutoff must lie in (0, fs/2) = (0, {nyquist:g}) Hz, got {value:g}")
    return value


def _rows(cutoff: float, order: int, *_: object) -> tuple[int, int]:
    return (order + 1) // 2, 6


# What is remembered are arrays, not tensors: one made while PyTorch traces a program would be a fake for ever.
@design_operator("butterworth_sos(float cutoff, int order, float fs, str btype) -> Tensor", shape=_rows)
@lru_cache(CACHED)
def _butterworth(cutoff: float, order: int, fs: float, btype: BandType) -> Coefficients:
    from scipy import signal

    return _usable(signal.butter(order, cutoff, btype, fs=fs, output="sos"), cutoff, order, fs)


@design_operator("chebyshev1_sos(float cutoff, int order, float ripple, float fs, str btype) -> Tensor", shape=_rows)
@lru_cache(CACHED)
def _chebyshev1(cutoff: float, order: int, ripple: float, fs: float, btype: BandType) -> Coefficients:
    from scipy import signal

    return _usable(signal.cheby1(order, ripple, cutoff, btype, fs=fs, output="sos"), cutoff, order, fs)


def _usable(sos: Coefficients, cutoff: float, order: int, fs: float) -> Coefficients:
    """Return the design, or raise where float64 cannot hold it: poles that round onto the unit circle, no gain left."""
    a1, a2 = sos[:, 4], sos[:, 5]
    stable = np.all((abs(a2) < 1) & (abs(a1) < 1 + a2))
    if not (stable and np.isfinite(sos).all() and sos[:, :3].any(axis=1).all()):
        raise ArgumentError(
            f"cutoff {cutoff:g} Hz and order {order} at fs {fs:g} Hz make a filter that float64 cannot hold; "
            f"raise the cutoff, or lower the order or the sample rate"
        )
    return sos
