"""Window-method finite impulse responses."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from torchfx.checks import finite_number, whole_number
from torchfx.design.iir import check_cutoff, is_learned
from torchfx.design.operator import design_operator
from torchfx.errors import ArgumentError, ArgumentTypeError

if TYPE_CHECKING:
    from torchfx.design.operator import Coefficients

__all__ = ["Window", "check_band_edges", "check_pass_zero", "check_taps", "check_window", "fir_taps"]

Window = str | tuple[str, float]
CACHED = 256


def fir_taps(
    cutoff: float | Sequence[float],
    num_taps: int,
    fs: float,
    window: Window = "hamming",
    pass_zero: bool = True,
) -> Tensor:
    """Design a linear-phase FIR filter by the window method.

    Args:
        cutoff: Hz, in (0, fs/2); several, ascending, for bands.
        num_taps: >= 1; odd when the response at fs/2 must pass.
        fs: sample rate, Hz.
        window: a name or (name, parameter) that `scipy.signal.get_window` knows.
        pass_zero: True passes 0 Hz (lowpass, bandstop), False stops it (highpass, bandpass).

    Returns:
        float64, (num_taps,), as `scipy.signal.firwin`. Shared: don't write to it.
    """
    edges = check_band_edges(cutoff, fs)
    check_taps(num_taps, edges, check_pass_zero(pass_zero))
    name, parameter = check_window(window)
    return _firwin(edges, num_taps, float(fs), name, parameter, pass_zero)


def check_band_edges(cutoff: float | Sequence[float], fs: float | None) -> tuple[float, ...]:
    """Return the cutoffs as floats, or raise unless they ascend within (0, fs/2) Hz."""
    if isinstance(cutoff, str):
        raise ArgumentTypeError(f"cutoff must be a number or a sequence of numbers in Hz, got {cutoff!r}")
    if getattr(cutoff, "ndim", 0) > 0:
        raise ArgumentTypeError(
            f"cutoff must be a number or a sequence of numbers in Hz, got {cutoff!r}; try .tolist()"
        )
    given = cutoff if isinstance(cutoff, Sequence) else (cutoff,)
    if any(is_learned(edge) for edge in given):
        raise ArgumentError("cutoff of a window design cannot be learned, got a tensor that requires a gradient")
    edges = tuple(check_cutoff(edge, fs) for edge in given)
    if not edges or any(low >= high for low, high in itertools.pairwise(edges)):
        raise ArgumentError(f"cutoff must be one or more ascending frequencies in Hz, got {list(edges)}")
    return edges


def check_taps(num_taps: int, edges: Sequence[float], pass_zero: bool) -> int:
    """Return the number of taps, or raise: an even number cannot pass fs/2 (a type II filter has a zero there)."""
    count = whole_number("num_taps", num_taps, 1)
    passes_nyquist = pass_zero == (len(edges) % 2 == 0)
    if passes_nyquist and count % 2 == 0:
        raise ArgumentError(f"num_taps must be odd for a filter that passes fs/2, got {count}")
    return count


def check_pass_zero(pass_zero: bool) -> bool:
    """Return `pass_zero`, or raise unless it is True or False."""
    if not isinstance(pass_zero, (bool, np.bool_)):
        raise ArgumentTypeError(f"pass_zero must be True or False, got {pass_zero!r}")
    return bool(pass_zero)


def check_window(window: Window) -> tuple[str, float | None]:
    """Return a window's name and parameter, or raise unless it is a name or a pair of name and number."""
    if isinstance(window, str):
        return window, None
    if not (isinstance(window, (tuple, list)) and len(window) == 2 and isinstance(window[0], str)):
        raise ArgumentTypeError(f"window must be a name or a pair (name, parameter), got {window!r}")
    return window[0], finite_number("window's parameter", window[1])


@design_operator(
    "firwin_taps(float[] edges, int num_taps, float fs, str window, float? parameter, bool pass_zero) -> Tensor",
    shape=lambda edges, num_taps, *_: (num_taps,),
)
def _firwin(
    edges: Sequence[float], num_taps: int, fs: float, window: str, parameter: float | None, pass_zero: bool
) -> Coefficients:
    return _remembered(tuple(edges), num_taps, fs, window if parameter is None else (window, parameter), pass_zero)


@lru_cache(CACHED)
def _remembered(edges: tuple[float, ...], num_taps: int, fs: float, window: Window, pass_zero: bool) -> Coefficients:
    from scipy import signal

    try:
        with np.errstate(invalid="ignore", divide="ignore"):
            taps = signal.firwin(num_taps, edges, window=window, pass_zero=pass_zero, fs=fs)
    except ValueError as error:
        raise ArgumentError(
            f"window must be one that scipy.signal.get_window knows, got {window!r}: {error}"
        ) from error
    if not np.isfinite(taps).all():  # a Hann window of two taps is two zeros
        raise ArgumentError(f"num_taps must leave the window {window!r} more than zeros, got {num_taps}")
    return np.asarray(taps, np.float64)
