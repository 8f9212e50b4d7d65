"""Finite impulse responses for several bands: by frequency sampling, least squares and the Remez exchange."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from torchfx.checks import number_text, sample_rate
from torchfx.design.firwin import CACHED, Window
from torchfx.design.operator import design_operator
from torchfx.errors import ArgumentError
from torchfx.parameters import count, frequencies, named, number, per_band
from torchfx.parameters import window as a_window

if TYPE_CHECKING:
    from torchfx.design.operator import Coefficients

__all__ = [
    "frequency_sampled_taps", "hilbert_taps", "is_whole_list", "least_squares_taps", "remez_taps",
    "savitzky_golay_taps",
]  # fmt: skip

EDGES = named("edges", frequencies(ends=True))
FREQUENCIES = named("frequencies", frequencies(ends=True))
GAINS = named("gains", per_band(number(low=0.0)))
WEIGHTS = named("weights", per_band(number(low=0.0, open_low=True)))
NUM_TAPS = named("num_taps", count())
WINDOW = named("window", a_window())


def frequency_sampled_taps(
    frequencies: float | Sequence[float], gains: Sequence[float], num_taps: int, fs: float, window: Window = "hamming"
) -> Tensor:
    """Design a linear-phase FIR filter whose gain follows straight lines between given points.

    Args:
        frequencies: Hz, ascending, in (0, fs/2); or SciPy's whole list, from 0 to fs/2, where one may come twice for a
            step.
        gains: linear, >= 0: at 0 Hz, at each of the frequencies, and at fs/2.
        num_taps: >= 1; odd unless the gain at fs/2 is 0.
        fs: sample rate, Hz.
        window: as that of `fir_taps`.

    Returns:
        float64, (num_taps,), as `scipy.signal.firwin2`. Shared: don't write to it.
    """
    points = _several(FREQUENCIES.check(frequencies, sample_rate(fs)))
    values = _several(GAINS.check(gains, None))
    if is_whole_list(points):
        if points[-1] != fs / 2:
            raise ArgumentError(
                f"frequencies that begin at 0 must end at fs/2 = {number_text(fs / 2)} Hz, "
                f"got {FREQUENCIES.show(points)}"
            )
    else:
        points = (0.0, *points, fs / 2)
    if len(values) != len(points):
        raise ArgumentError(
            f"gains must hold {len(points)} values, at 0 Hz, at the {len(points) - 2} frequencies and at fs/2, "
            f"got {len(values)}"
        )
    _check_parity(num_taps, values[-1])
    found = WINDOW.check(window, fs)
    name, parameter = (found, None) if isinstance(found, str) else found
    return _firwin2(points, values, NUM_TAPS.check(num_taps, None), float(fs), name, parameter)


def least_squares_taps(
    edges: Sequence[float], gains: Sequence[float], num_taps: int, fs: float, weights: float | Sequence[float] = 1.0
) -> Tensor:
    """Design the linear-phase FIR filter with the least squared error over its bands.

    Args:
        edges: Hz, ascending: the end of each band but the last and the beginning of each but the first, two for each
            transition; or as in SciPy beginning and end of every band, two for each, in [0, fs/2].
        gains: linear, >= 0: of each band; with SciPy's edges one for each edge, too, with straight lines between.
        num_taps: odd.
        fs: sample rate, Hz.
        weights: how much each band's error counts, > 0; one for all, or one for each.

    Returns:
        float64, (num_taps,), as `scipy.signal.firls`. Shared: don't write to it.
    """
    arguments = _bands(edges, gains, num_taps, fs, weights, sloped=True)
    if num_taps % 2 == 0:
        raise ArgumentError(f"num_taps must be odd, got {num_taps}")
    return _firls(*arguments)


def remez_taps(
    edges: Sequence[float], gains: Sequence[float], num_taps: int, fs: float, weights: float | Sequence[float] = 1.0
) -> Tensor:
    """Design the linear-phase FIR filter with the least largest error over its bands, by the Parks-McClellan algorithm.

    Args:
        edges, gains, fs, weights: as those of `least_squares_taps`, with one gain for each band.
        num_taps: >= 3; odd unless the last gain is 0.

    Returns:
        float64, (num_taps,), as `scipy.signal.remez`. Shared: don't write to it.

    Raises:
        ArgumentError: the exchange does not converge, as where a transition is too narrow for the taps.
    """
    arguments = _bands(edges, gains, num_taps, fs, weights)
    if num_taps < 3:
        raise ArgumentError(f"num_taps must be a whole number >= 3, got {num_taps}")
    _check_parity(num_taps, arguments[1][-1])
    return _remez(*arguments)


def savitzky_golay_taps(window_length: int, polyorder: int, deriv: int = 0) -> Tensor:
    """Design the filter that fits polynomials of degree `polyorder` to every `window_length` samples.

    Args:
        window_length: >= 1.
        polyorder: in [0, window_length - 1].
        deriv: which derivative, per sample, of the polynomial at the window's middle; 0 is its value.

    Returns:
        float64, (window_length,), as `scipy.signal.savgol_coeffs`. Shared: don't write to it.
    """
    if polyorder >= window_length:
        raise ArgumentError(f"polyorder must be less than window_length = {window_length}, got {polyorder}")
    return _savgol(window_length, polyorder, deriv)


def hilbert_taps(num_taps: int, window: Window = "hamming") -> Tensor:
    """Design a Hilbert transformer by the window method: all frequencies are shifted by -90 degrees.

    Of type III with an odd number of taps (every other one is 0; the gain falls towards 0 Hz and fs/2), of type IV
    with an even number (it falls towards 0 Hz only, and the delay is no whole number).

    Args:
        num_taps: >= 2.
        window: as that of `fir_taps`.

    Returns:
        float64, (num_taps,). Shared: don't write to it.
    """
    found = WINDOW.check(window, None)
    name, parameter = (found, None) if isinstance(found, str) else found
    return _hilbert(num_taps, name, parameter)


# --- checks -----------------------------------------------------------------------------------------------------------


def _several(value: float | tuple[float, ...]) -> tuple[float, ...]:
    return value if isinstance(value, tuple) else (value,)


def _check_parity(num_taps: int, last_gain: float) -> None:
    # A type II filter, of an even number of taps, has a zero at fs/2.
    if num_taps % 2 == 0 and last_gain != 0:
        raise ArgumentError(f"num_taps must be odd for a filter that passes fs/2, got {num_taps}")


def is_whole_list(frequencies: float | Sequence[float]) -> bool:
    """Return whether frequencies are a list as SciPy takes it, which begins at 0."""
    return isinstance(frequencies, Sequence) and frequencies[0] == 0


def _bands(
    edges: Sequence[float],
    gains: Sequence[float],
    num_taps: int,
    fs: float,
    weights: float | Sequence[float],
    sloped: bool = False,
) -> tuple[tuple[float, ...], tuple[float, ...], int, float, tuple[float, ...]]:
    """Return the arguments as the operators take them: both edges of each band; two gains for each where `sloped`."""
    given, values = _several(EDGES.check(edges, sample_rate(fs))), _several(GAINS.check(gains, None))
    per_edge = sloped and len(given) == len(values) and (len(values) > 2 or is_whole_list(given))
    bands = len(values) // 2 if per_edge else len(values)
    whole = given if per_edge or len(given) == 2 * bands else (0.0, *given, fs / 2)
    if len(whole) != 2 * bands:
        raise ArgumentError(
            f"edges must hold 2 frequencies for each transition, {2 * (bands - 1)} for {bands} gains, or 2 for each "
            f"band, {2 * bands}, got {EDGES.show(given)}"
        )
    found = _several(WEIGHTS.check(weights, None))
    found = found * bands if len(found) == 1 else found
    if len(found) != bands:
        raise ArgumentError(f"weights must hold one value, or one for each of {bands} bands, got {len(found)}")
    if sloped and not per_edge:
        values = tuple(gain for gain in values for _ in range(2))
    return whole, values, NUM_TAPS.check(num_taps, None), float(fs), found


# --- designs ----------------------------------------------------------------------------------------------------------


def _operator(schema: str, place: int) -> Callable[[Callable[..., Coefficients]], Callable[..., Tensor]]:
    """Turn a design into a remembered operator; its argument at this place is the number of taps."""

    def register(design: Callable[..., Coefficients]) -> Callable[..., Tensor]:
        remembered = lru_cache(CACHED)(design)

        @wraps(design)
        def run(*arguments: Any) -> Coefficients:
            hashable = [tuple(each) if isinstance(each, (list, tuple)) else each for each in arguments]
            try:
                taps = np.ascontiguousarray(remembered(*hashable), np.float64)
            except ValueError as error:
                raise ArgumentError(f"{schema.partition('(')[0]} has no solution: {error}") from error
            if not np.isfinite(taps).all():
                raise ArgumentError(f"{schema.partition('(')[0]} has no finite solution")
            return taps

        return design_operator(f"{schema} -> Tensor", lambda *arguments: (arguments[place],))(run)

    return register


@_operator("firwin2_taps(float[] frequencies, float[] gains, int num_taps, float fs, str window, float? parameter)", 2)
def _firwin2(
    frequencies: tuple[float, ...],
    gains: tuple[float, ...],
    num_taps: int,
    fs: float,
    window: str,
    parameter: float | None,
) -> Coefficients:
    from scipy import signal

    found = window if parameter is None else (window, parameter)
    return np.asarray(signal.firwin2(num_taps, frequencies, gains, window=found, fs=fs))


@_operator("firls_taps(float[] edges, float[] gains, int num_taps, float fs, float[] weights)", 2)
def _firls(
    edges: tuple[float, ...], gains: tuple[float, ...], num_taps: int, fs: float, weights: tuple[float, ...]
) -> Coefficients:
    from scipy import signal

    return np.asarray(signal.firls(num_taps, edges, gains, weight=weights, fs=fs))


@_operator("remez_taps(float[] edges, float[] gains, int num_taps, float fs, float[] weights)", 2)
def _remez(
    edges: tuple[float, ...], gains: tuple[float, ...], num_taps: int, fs: float, weights: tuple[float, ...]
) -> Coefficients:
    from scipy import signal

    return np.asarray(signal.remez(num_taps, edges, gains, weight=weights, fs=fs))


@_operator("savgol_taps(int window_length, int polyorder, int deriv)", 0)
def _savgol(window_length: int, polyorder: int, deriv: int) -> Coefficients:
    from scipy import signal

    return np.asarray(signal.savgol_coeffs(window_length, polyorder, deriv))


@_operator("hilbert_taps(int num_taps, str window, float? parameter)", 0)
def _hilbert(num_taps: int, window: str, parameter: float | None) -> Coefficients:
    from scipy import signal

    weights = signal.get_window(window if parameter is None else (window, parameter), num_taps, fftbins=False)
    n = np.arange(num_taps) - (num_taps - 1) / 2
    odd = np.where(n % 2 == 0, 0.0, 1.0)  # of (1 - cos(pi n)) / (pi n): 2 or 0 at whole n, 1 between them
    numerator = 2 * odd if num_taps % 2 else np.ones(num_taps)
    return weights * numerator / (np.pi * np.where(n == 0, 1.0, n))
