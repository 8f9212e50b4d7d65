"""Classical recursive filters as second-order sections: Butterworth, Chebyshev, elliptic and Bessel designs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from torch import Tensor

from torchfx.checks import number_text, sample_rate, whole_number
from torchfx.design.bilinear import sections, stacked
from torchfx.design.operator import design_operator
from torchfx.design.prototype import prototype
from torchfx.errors import ArgumentError
from torchfx.parameters import choice, frequencies, named, number
from torchfx.tensors import is_readable

if TYPE_CHECKING:
    from torchfx.design.operator import Coefficients

__all__ = [
    "BAND_TYPES",
    "BESSEL_NORMS",
    "MOST_BESSEL",
    "MOST_ORDER",
    "MOST_RIPPLE",
    "BandType",
    "BesselNorm",
    "Cutoff",
    "bessel",
    "butterworth",
    "chebyshev1",
    "chebyshev2",
    "check_edges",
    "check_levels",
    "elliptic",
]

BandType = Literal["lowpass", "highpass", "bandpass", "bandstop"]
BesselNorm = Literal["phase", "delay", "mag"]
Cutoff = float | Sequence[float] | Tensor
BAND_TYPES = ("lowpass", "highpass", "bandpass", "bandstop")
BESSEL_NORMS = ("phase", "delay", "mag")
MOST_RIPPLE = 3000.0  # dB; float64 holds no larger one's power
LEAST_GAIN = 1e-290
"""The least gain of a filter's first section, which has the whole gain: samples times it are still normal numbers."""

MOST_ORDER = 1000  # float64 holds filters of some 100 poles at best
MOST_BESSEL = 50  # SciPy finds no poles for some higher orders
CACHED = 1024  # designs remembered: a stream asks twice for each


def butterworth(cutoff: Cutoff, order: int, fs: float, btype: BandType = "lowpass") -> Tensor:
    """Design a Butterworth filter: flat passband, -3 dB at the edges.

    Args:
        cutoff: Hz, in (0, fs/2); a pair of ascending edges for a band. A tensor (...), or (..., 2) for bands, gives a
            filter for each of its values, differentiably.
        order: >= 1; bands have twice as many poles.
        fs: sample rate, Hz.
        btype: "lowpass", "highpass", "bandpass" or "bandstop".

    Returns:
        float64, (..., sections, 6), rows b0 b1 b2 a0 a1 a2, with the transfer function of `scipy.signal.butter`.
        Sections of low-pass and high-pass filters are SciPy's too; those of bands pair each pole with the zero next to
        it. Shared: don't write to it.

    Raises:
        ArgumentError: an edge out of range, one edge for a band or two for none, a filter that float64 cannot hold.

    Examples:
        >>> butterworth((300, 3400), 4, 48_000, "bandpass").shape
        torch.Size([4, 6])
    """
    return _design("butterworth", cutoff, order, (), fs, btype)


def chebyshev1(cutoff: Cutoff, order: int, ripple: float, fs: float, btype: BandType = "lowpass") -> Tensor:
    """Design a Chebyshev type I filter: steeper, with `ripple` dB of it in the passband, -ripple dB at the edges.

    Args:
        cutoff, order, fs, btype: as in `butterworth`.
        ripple: dB, in (0, 3000].

    Returns:
        As `butterworth`, with the transfer function of `scipy.signal.cheby1`.
    """
    return _design("chebyshev1", cutoff, order, (RIPPLE.check(ripple, None),), fs, btype)


def chebyshev2(cutoff: Cutoff, order: int, attenuation: float, fs: float, btype: BandType = "lowpass") -> Tensor:
    """Design a Chebyshev type II filter: flat passband, `attenuation` dB from the edges on.

    Args:
        cutoff: the stopband's edges; else as in `butterworth`.
        order, fs, btype: as in `butterworth`.
        attenuation: dB, in (0, 3000].

    Returns:
        As `butterworth`, with the transfer function of `scipy.signal.cheby2`.
    """
    return _design("chebyshev2", cutoff, order, (ATTENUATION.check(attenuation, None),), fs, btype)


def elliptic(
    cutoff: Cutoff, order: int, ripple: float, attenuation: float, fs: float, btype: BandType = "lowpass"
) -> Tensor:
    """Design an elliptic (Cauer) filter: the steepest, with ripple in both bands, -ripple dB at the edges.

    Args:
        cutoff, order, fs, btype: as in `butterworth`.
        ripple: of the passband, dB, in (0, 3000].
        attenuation: of the stopband, dB, in (ripple, 3000].

    Returns:
        As `butterworth`, with the transfer function of `scipy.signal.ellip`.
    """
    ripple, attenuation = RIPPLE.check(ripple, None), ATTENUATION.check(attenuation, None)
    check_levels(ripple, attenuation)
    return _design("elliptic", cutoff, order, (ripple, attenuation), fs, btype)


def bessel(cutoff: Cutoff, order: int, fs: float, btype: BandType = "lowpass", norm: BesselNorm = "phase") -> Tensor:
    """Design a Bessel filter: an analogue prototype of maximally flat group delay.

    Args:
        cutoff, order, fs, btype: as in `butterworth`.
        norm: what holds at the edges of the prototype: the phase of a Butterworth filter ("phase"), -3 dB ("mag"), or a
            group delay of 1/cutoff at 0 Hz ("delay").

    Returns:
        As `butterworth`, with the transfer function of `scipy.signal.bessel`.
    """
    order = whole_number("order", order, 1, MOST_BESSEL)
    return _design(f"bessel_{NORM.check(norm, None)}", cutoff, order, (), fs, btype)


CUTOFF = named("cutoff", frequencies(learnable=True))
RIPPLE = named("ripple", number(low=0.0, open_low=True, high=MOST_RIPPLE, unit="dB", learnable=False))
ATTENUATION = named("attenuation", number(low=0.0, open_low=True, high=MOST_RIPPLE, unit="dB", learnable=False))
NORM = named("norm", choice(BESSEL_NORMS))


def check_levels(ripple: float, attenuation: float) -> None:
    """Raise unless the stopband loses more than the passband."""
    if attenuation <= ripple:
        raise ArgumentError(
            f"attenuation must exceed the ripple of {number_text(ripple)} dB, got {number_text(attenuation)}"
        )


def check_edges(cutoff: Any, btype: str) -> None:
    """Raise unless checked edges are as many as the type of band has."""
    if btype not in BAND_TYPES:
        raise ArgumentError(f"btype must be one of {', '.join(BAND_TYPES)}, got {btype!r}")
    learned, band = isinstance(cutoff, Tensor), btype.startswith("band")
    if band and not (cutoff.shape[-1:] == (2,) if learned else isinstance(cutoff, tuple) and len(cutoff) == 2):
        what = "a tensor (..., 2)" if learned else "a pair of frequencies"
        raise ArgumentError(f"cutoff must be {what} for a {btype}, got {CUTOFF.show(cutoff)}")
    if not band and isinstance(cutoff, tuple):
        raise ArgumentError(f"cutoff must be one frequency for a {btype}, got {CUTOFF.show(cutoff)}")
    if band and learned and is_readable(cutoff) and not bool((cutoff[..., 0] < cutoff[..., 1]).all()):
        raise ArgumentError("cutoff must hold pairs of ascending frequencies in its last dimension")


def _design(
    family: str, cutoff: Cutoff, order: int, parameters: tuple[float, ...], fs: float, btype: BandType
) -> Tensor:
    edges: Any = CUTOFF.check(cutoff, sample_rate(fs))
    order = whole_number("order", order, 1, MOST_ORDER)
    check_edges(edges, btype)
    band, high = btype.startswith("band"), btype in {"highpass", "bandstop"}
    if isinstance(edges, Tensor):
        edges = edges.double()
        made = prototype(family, order, parameters, high)
        return stacked(sections(edges.unbind(-1) if band else (edges,), fs, made, high))
    return _numbers(edges if band else (edges,), family, order, parameters, float(fs), high)


def _shape(edges: Sequence[float], family: str, order: int, *_: object) -> tuple[int, int]:
    return (order + 1) // 2 if len(edges) == 1 else order, 6


@design_operator(
    "iir_sos(float[] edges, str family, int order, float[] parameters, float fs, bool high) -> Tensor", shape=_shape
)
def _numbers(
    edges: Sequence[float], family: str, order: int, parameters: Sequence[float], fs: float, high: bool
) -> Coefficients:
    return _remembered(tuple(edges), family, order, tuple(parameters), fs, high)


# What is remembered are arrays, not tensors: one made while PyTorch traces a program would be a fake for ever.
@lru_cache(CACHED)
def _remembered(
    edges: tuple[float, ...], family: str, order: int, parameters: tuple[float, ...], fs: float, high: bool
) -> Coefficients:
    """Return a design, or raise where float64 cannot hold it: poles that round onto the unit circle, no gain left."""
    try:
        rows = sections(edges, fs, prototype(family, order, parameters, high), high)
    except (ArithmeticError, ValueError, MemoryError):
        rows = []
    if rows and abs(rows[0][0]) > LEAST_GAIN and all(abs(a2) < 1 and abs(a1) < 1 + a2 for *_, a1, a2 in rows):
        return np.array(rows)
    shown = " and ".join(f"{number_text(edge)} Hz" for edge in edges)
    # A low edge needs poles next to 1, an edge near fs/2 poles next to -1.
    direction = "raise" if edges[0] < fs / 4 else "lower"
    raise ArgumentError(
        f"cutoff {shown} and order {order} at fs {number_text(fs)} Hz make a filter that float64 "
        f"cannot hold; {direction} the cutoff, or lower the order"
    )
