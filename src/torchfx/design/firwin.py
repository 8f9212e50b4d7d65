"""Window-method finite impulse responses."""

from __future__ import annotations

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

__all__ = ["Window", "fir_taps"]

Window = str | tuple[str, float]
CACHED = 256


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
    return _firwin(edges, num_taps, float(fs), name, parameter, passes_zero)


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
