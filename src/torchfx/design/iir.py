"""Butterworth and Chebyshev type I designs as second-order sections."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
from torch import Tensor

from torchfx.checks import number_text, sample_rate, whole_number
from torchfx.design.operator import design_operator
from torchfx.design.prototype import place_cutoff
from torchfx.errors import ArgumentError
from torchfx.parameters import frequency, named, number

if TYPE_CHECKING:
    from torchfx.design.operator import Coefficients

__all__ = ["MOST_ORDER", "MOST_RIPPLE", "BandType", "butterworth", "chebyshev1"]

BandType = Literal["lowpass", "highpass"]
MOST_RIPPLE = 3000.0  # dB; float64 holds no larger one's power
MOST_ORDER = 1000  # a design of so many poles takes a second; float64 holds those of some 100 at best
CACHED = 1024  # designs remembered; one takes about half a millisecond and a few hundred bytes


def butterworth(cutoff: float | Tensor, order: int, fs: float, btype: BandType) -> Tensor:
    """Design a Butterworth filter: flat passband, -3 dB at the cutoff.

    Args:
        cutoff: Hz, in (0, fs/2); a tensor (...) gives a filter for each of its values, differentiably.
        order: >= 1.
        fs: sample rate, Hz.
        btype: "lowpass" or "highpass".

    Returns:
        float64, (..., ceil(order / 2), 6), as `scipy.signal.butter(..., output="sos")`. Shared: don't write to it.
    """
    cutoff, order = CUTOFF.check(cutoff, sample_rate(fs)), whole_number("order", order, 1, MOST_ORDER)
    _check_band_type(btype)
    if not isinstance(cutoff, Tensor):
        return _butterworth(cutoff, order, float(fs), btype)
    from scipy.signal import buttap

    return place_cutoff(cutoff, fs, btype == "highpass", buttap(order)[1], 1.0)


def chebyshev1(cutoff: float | Tensor, order: int, ripple: float, fs: float, btype: BandType) -> Tensor:
    """Design a Chebyshev type I filter: steeper, with `ripple` dB of it in the passband, -ripple dB at the cutoff.

    Args:
        cutoff: Hz, in (0, fs/2); a tensor (...) gives a filter for each of its values, differentiably.
        order: >= 1.
        ripple: dB, in (0, 3000].
        fs: sample rate, Hz.
        btype: "lowpass" or "highpass".

    Returns:
        float64, (..., ceil(order / 2), 6), as `scipy.signal.cheby1(..., output="sos")`. Shared: don't write to it.
    """
    cutoff, order = CUTOFF.check(cutoff, sample_rate(fs)), whole_number("order", order, 1, MOST_ORDER)
    ripple = RIPPLE.check(ripple, fs)
    _check_band_type(btype)
    if not isinstance(cutoff, Tensor):
        return _chebyshev1(cutoff, order, ripple, float(fs), btype)
    from scipy.signal import cheb1ap

    gain = 1.0 if order % 2 else 10 ** (-ripple / 20)  # even orders start in a trough of the ripple
    return place_cutoff(cutoff, fs, btype == "highpass", cheb1ap(order, ripple)[1], gain)


CUTOFF = named("cutoff", frequency())
RIPPLE = named("ripple", number(low=0.0, open_low=True, high=MOST_RIPPLE, unit="dB", learnable=False))


def _check_band_type(btype: BandType) -> None:
    if btype not in get_args(BandType):
        raise ArgumentError(f"btype must be one of {', '.join(get_args(BandType))}, got {btype!r}")


def _rows(cutoff: float, order: int, *_: object) -> tuple[int, int]:
    return (order + 1) // 2, 6


# What is remembered are arrays, not tensors: one made while PyTorch traces a program would be a fake for ever.
@design_operator("butterworth_sos(float cutoff, int order, float fs, str btype) -> Tensor", shape=_rows)
@lru_cache(CACHED)
def _butterworth(cutoff: float, order: int, fs: float, btype: BandType) -> Coefficients:
    from scipy import signal

    return _usable(lambda: signal.butter(order, cutoff, btype, fs=fs, output="sos"), cutoff, order, fs, btype)


@design_operator("chebyshev1_sos(float cutoff, int order, float ripple, float fs, str btype) -> Tensor", shape=_rows)
@lru_cache(CACHED)
def _chebyshev1(cutoff: float, order: int, ripple: float, fs: float, btype: BandType) -> Coefficients:
    from scipy import signal

    return _usable(lambda: signal.cheby1(order, ripple, cutoff, btype, fs=fs, output="sos"), cutoff, order, fs, btype)


def _usable(design: Callable[[], Coefficients], cutoff: float, order: int, fs: float, btype: BandType) -> Coefficients:
    """Return a design, or raise where float64 cannot hold it: poles that round onto the unit circle, no gain left."""
    try:
        with np.errstate(all="ignore"):
            sos = design()
    except (OverflowError, ValueError, MemoryError, ZeroDivisionError):
        sos = np.full((1, 6), np.nan)
    a1, a2 = sos[:, 4], sos[:, 5]
    stable = np.all((abs(a2) < 1) & (abs(a1) < 1 + a2))
    if stable and np.isfinite(sos).all() and sos[:, :3].any(axis=1).all():
        return sos
    # A low edge needs poles next to 1, an edge near fs/2 poles next to -1.
    direction = "raise" if cutoff < fs / 4 else "lower"
    raise ArgumentError(
        f"cutoff {number_text(cutoff)} Hz and order {order} at fs {number_text(fs)} Hz make a filter that float64 "
        f"cannot hold; {direction} the cutoff, or lower the order"
    )
