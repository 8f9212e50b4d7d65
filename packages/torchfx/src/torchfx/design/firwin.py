"""Window-method finite impulse responses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from torchfx.checks import sample_rate
from torchfx.design.operator import design_operator
from torchfx.errors import ArgumentError
from torchfx.parameters import PassZero, count, frequencies, named
from torchfx.parameters import pass_zero as a_band
from torchfx.parameters import window as a_window

if TYPE_CHECKING:
    from torchfx.design.operator import Coefficients

__all__ = ["Window", "fir_taps", "kaiser_taps", "minimum_phase_taps"]

Window = str | tuple[str, float]
CACHED = 256
MOST_TAPS = 1_000_000


CUTOFF = named("cutoff", frequencies())
NUM_TAPS = named("num_taps", count())
WINDOW = named("window", a_window())
PASS_ZERO = named("pass_zero", a_band())


def fir_taps(
    cutoff: float | Sequence[float],
    num_taps: int,
    fs: float,
    window: Window = "hamming",
    pass_zero: bool | str = True,
) -> Tensor:
    """Design a linear-phase FIR filter by the window method.

    Args:
        cutoff: Hz, in (0, fs/2); several, ascending, for bands.
        num_taps: >= 1; odd when the response at fs/2 must pass.
        fs: sample rate, Hz.
        window: a name or (name, parameter) that `scipy.signal.get_window` knows.
        pass_zero: True passes 0 Hz (lowpass, bandstop), False stops it (highpass, bandpass); or one of these names.

    Returns:
        float64, (num_taps,), as `scipy.signal.firwin`. Shared: don't write to it.
    """
    return _firwin(*_checked(cutoff, num_taps, fs, window, pass_zero))


def kaiser_taps(
    cutoff: float | Sequence[float], transition: float, attenuation_db: float, fs: float, pass_zero: bool | str = True
) -> Tensor:
    """Design a linear-phase FIR filter with the shortest Kaiser window that keeps a specification.

    Args:
        cutoff, fs, pass_zero: as those of `fir_taps`.
        transition: width of the transition between pass band and stop band, around the cutoff, Hz.
        attenuation_db: of the stop band, dB >= 8; the ripple of the pass band is as small.

    Returns:
        float64, (n,), n odd, as `scipy.signal.firwin` with the window of `scipy.signal.kaiserord`. Shared.
    """
    # J. F. Kaiser, Nonrecursive digital filter design using the I0-sinh window function, 1974.
    count = (attenuation_db - 7.95) / 2.285 / (math.pi * transition / (0.5 * fs)) + 1
    if not count <= MOST_TAPS:
        raise ArgumentError(
            f"transition must be wider than {transition * count / MOST_TAPS:.3g} Hz for {attenuation_db:g} dB at "
            f"{fs:g} Hz, got {transition:g}"
        )
    if attenuation_db > 50:
        beta = 0.1102 * (attenuation_db - 8.7)
    else:
        beta = 0.5842 * max(attenuation_db - 21, 0.0) ** 0.4 + 0.07886 * max(attenuation_db - 21, 0.0)
    return fir_taps(cutoff, math.ceil(count) | 1, fs, ("kaiser", beta), pass_zero)


def minimum_phase_taps(
    cutoff: float | Sequence[float],
    num_taps: int,
    fs: float,
    window: Window = "hamming",
    pass_zero: bool | str = True,
) -> Tensor:
    """Design the filter of minimum phase, and so of least delay, whose magnitude is that of `fir_taps`.

    Returns:
        float64, (num_taps,), as `scipy.signal.minimum_phase` makes them of the linear-phase filter convolved with
        itself (it takes the root of the magnitude). Shared: don't write to it.
    """
    return _minimum_phase(*_checked(cutoff, num_taps, fs, window, pass_zero))


def _checked(
    cutoff: float | Sequence[float], num_taps: int, fs: float, window: Window, pass_zero: bool | str
) -> tuple[tuple[float, ...], int, float, str, float | None, bool]:
    """Return the arguments as the operators take them."""
    checked = CUTOFF.check(cutoff, sample_rate(fs))
    edges = checked if isinstance(checked, tuple) else (checked,)
    num_taps, band = NUM_TAPS.check(num_taps, fs), PASS_ZERO.check(pass_zero, fs)
    if isinstance(band, str) and band.startswith("band") != (len(edges) > 1):
        wanted = "one edge" if len(edges) > 1 else "two edges or more"
        raise ArgumentError(f"cutoff must hold {wanted} for a {band}, got {CUTOFF.show(checked)}")
    passes_zero = band in PassZero.NAMES[:2] if isinstance(band, str) else band
    # A type II filter, of an even number of taps, has a zero at fs/2.
    if passes_zero == (len(edges) % 2 == 0) and num_taps % 2 == 0:
        raise ArgumentError(f"num_taps must be odd for a filter that passes fs/2, got {num_taps}")
    found = WINDOW.check(window, fs)
    name, parameter = (found, None) if isinstance(found, str) else found
    return edges, num_taps, float(fs), name, parameter, passes_zero


@design_operator(
    "firwin_taps(float[] edges, int num_taps, float fs, str window, float? parameter, bool pass_zero) -> Tensor",
    shape=lambda edges, num_taps, *_: (num_taps,),
)
def _firwin(
    edges: Sequence[float], num_taps: int, fs: float, window: str, parameter: float | None, pass_zero: bool
) -> Coefficients:
    return _remembered(tuple(edges), num_taps, fs, window if parameter is None else (window, parameter), pass_zero)


@design_operator(
    "minimum_phase_taps(float[] edges, int num_taps, float fs, str window, float? parameter, bool pass_zero) -> Tensor",
    shape=lambda edges, num_taps, *_: (num_taps,),
)
def _minimum_phase(
    edges: Sequence[float], num_taps: int, fs: float, window: str, parameter: float | None, pass_zero: bool
) -> Coefficients:
    found = window if parameter is None else (window, parameter)
    return _remembered_minimum(tuple(edges), num_taps, fs, found, pass_zero)


@lru_cache(CACHED)
def _remembered_minimum(
    edges: tuple[float, ...], num_taps: int, fs: float, window: Window, pass_zero: bool
) -> Coefficients:
    from scipy import signal

    taps = _remembered(edges, num_taps, fs, window, pass_zero)
    if num_taps < 2:
        return taps
    return np.ascontiguousarray(signal.minimum_phase(np.convolve(taps, taps), "homomorphic"), np.float64)


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
