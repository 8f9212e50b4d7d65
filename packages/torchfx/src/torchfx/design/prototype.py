"""Analogue prototypes: the poles and zeros of a filter whose edge lies at 1 rad/s."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

__all__ = ["FAMILIES", "Pair", "Prototype", "prototype"]


class Pair(NamedTuple):
    """Two conjugate poles of an analogue filter, and the zeros that belong to them.

    Attributes:
        re, im: the pole in the upper half plane, rad/s.
        zero: the square of the zeros' frequency, (rad/s)^2; None for zeros at infinity.
        factor: of the numerator s^2 + zero, or of the numerator 1, so that the gain is 1 where the filter passes: at 0
            in a low-pass, at infinity in a high-pass.
    """

    re: float
    im: float
    zero: float | None
    factor: float

    def inverted(self) -> Pair:
        """Return the pair with 1/s instead of s: a low-pass becomes a high-pass."""
        square = self.re**2 + self.im**2
        return Pair(self.re / square, self.im / square, 0.0 if self.zero is None else 1 / self.zero, 1.0)


class Prototype(NamedTuple):
    """An analogue low-pass or high-pass with its edge at 1 rad/s.

    Attributes:
        pairs: conjugate poles, those nearest to the imaginary axis last; more than `MOST_SORTED`, in `_balanced` order.
        pole: the distance of a real pole from 0, rad/s; None in filters of even order.
        gain: the gain at 0 of a low-pass, at infinity of a high-pass.
    """

    pairs: tuple[Pair, ...]
    pole: float | None
    gain: float

    def inverted(self) -> Prototype:
        """Return the high-pass of a low-pass."""
        return Prototype(
            tuple(pair.inverted() for pair in self.pairs), None if self.pole is None else 1 / self.pole, self.gain
        )


MOST_SORTED = 12
"""Up to this number of pairs, sorted as they are, lose less than 1e-10 of the peak in any family."""


def butterworth(order: int) -> Prototype:
    """Return the maximally flat prototype; all poles have the distance 1 (S. Butterworth, 1930)."""
    return Prototype(_pairs((-math.sin(a), math.cos(a), None) for a in _angles(order)), _odd(order, 1.0), 1.0)


def chebyshev1(order: int, ripple: float) -> Prototype:
    """Return the prototype with `ripple` dB in the passband: poles on an ellipse (R. W. Daniels, 1974, chapter 3)."""
    across, along = _ellipse(order, _ripple(ripple))
    poles = ((-across * math.sin(a), along * math.cos(a), None) for a in _angles(order))
    return Prototype(_pairs(poles), _odd(order, across), _trough(order, ripple))


def chebyshev2(order: int, attenuation: float) -> Prototype:
    """Return the prototype with at least `attenuation` dB beyond its edge: 1/s in a Chebyshev I high-pass."""
    across, along = _ellipse(order, 1 / _ripple(attenuation))
    poles = (complex(-across * math.sin(a), -along * math.cos(a)) for a in _angles(order))
    inverse = ((1 / pole, a) for pole, a in zip(poles, _angles(order), strict=True))
    return Prototype(_pairs((p.real, p.imag, math.cos(a) ** -2) for p, a in inverse), _odd(order, 1 / across), 1.0)


def elliptic(order: int, ripple: float, attenuation: float) -> Prototype:
    """Return the prototype with ripple in both bands; SciPy solves for its poles and zeros."""
    from scipy.signal import ellipap

    zeros, poles, _ = ellipap(order, ripple, attenuation)
    # The pole next to the edge is the one nearest to the imaginary axis, and the lowest zero is next to it.
    found = _known(poles, sorted((float(zero.imag) ** 2 for zero in zeros if zero.imag > 0), reverse=True))
    return Prototype(found.pairs, found.pole, _trough(order, ripple))


def bessel(order: int, norm: Literal["phase", "delay", "mag"]) -> Prototype:
    """Return the prototype of maximally flat group delay; SciPy solves for its poles."""
    from scipy.signal import besselap

    return _known(besselap(order, norm)[1], [None] * (order // 2))


FAMILIES: dict[str, Callable[..., Prototype]] = {
    "butterworth": butterworth,
    "chebyshev1": chebyshev1,
    "chebyshev2": chebyshev2,
    "elliptic": elliptic,
    "bessel_phase": lambda order: bessel(order, "phase"),
    "bessel_delay": lambda order: bessel(order, "delay"),
    "bessel_mag": lambda order: bessel(order, "mag"),
}
"""Makers of low-pass prototypes, from the order and the family's other parameters (dB)."""


def prototype(family: str, order: int, parameters: tuple[float, ...], inverted: bool) -> Prototype:
    """Return a family's low-pass, or its high-pass."""
    return _remembered(family, order, parameters, inverted)


# As `torch.compiler.assume_constant_result` does, which imports the compiler: traced programs call SciPy beforehand.
prototype._dynamo_marked_constant = True  # type: ignore[attr-defined]


@lru_cache(256)
def _remembered(family: str, order: int, parameters: tuple[float, ...], inverted: bool) -> Prototype:
    low = FAMILIES[family](order, *parameters)
    if len(low.pairs) > MOST_SORTED:
        low = low._replace(pairs=_balanced(low.pairs))
    return low.inverted() if inverted else low


def _balanced(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    """Return pairs in an order in which no part of the cascade is much louder than all of it.

    Each place gets the pair with which the largest gain up to it, times the largest one after it, is least. What is
    rounded within a cascade is raised by what lies after: sorted, the pairs of a Chebyshev filter of order 64 first
    take away 1e16 and then give it back.
    """
    places = np.concatenate([np.geomspace(1e-3, 1e3, 601), [abs(complex(pair.re, pair.im)) for pair in pairs]])
    square = -(places**2)
    levels = [
        np.log(abs(pair.factor * (np.ones_like(square) if pair.zero is None else square + pair.zero)) + 1e-300)
        - np.log(abs(square - 2j * pair.re * places + pair.re**2 + pair.im**2))
        for pair in pairs
    ]
    before, behind, left, found = np.zeros_like(places), np.sum(levels, axis=0), list(range(len(pairs))), []
    while left:
        chosen = min(left, key=lambda i: float((before + levels[i]).max() + (behind - levels[i]).max()))
        left.remove(chosen)
        found.append(pairs[chosen])
        before, behind = before + levels[chosen], behind - levels[chosen]
    return tuple(found)


def _angles(order: int) -> list[float]:
    """Return the poles' angles from the imaginary axis, the smallest last; those of the upper half plane alone."""
    return [math.pi * (2 * k - 1) / (2 * order) for k in range(order // 2, 0, -1)]


def _ellipse(order: int, ripple: float) -> tuple[float, float]:
    """Return the half axes of the ellipse on which the poles of a Chebyshev filter lie."""
    stretch = math.asinh(1 / ripple) / order
    return math.sinh(stretch), math.cosh(stretch)


def _ripple(db: float) -> float:
    """Return e of 1 / (1 + e^2), the power that is `db` below 1."""
    return math.sqrt(math.expm1(db * math.log(10) / 10))


def _trough(order: int, ripple: float) -> float:
    """Return the gain at 0 Hz: even orders start in a trough of the ripple."""
    return 1.0 if order % 2 else 10 ** (-ripple / 20)


def _odd(order: int, pole: float) -> float | None:
    return pole if order % 2 else None


def _pairs(values: Iterable[tuple[float, float, float | None]]) -> tuple[Pair, ...]:
    found = []
    for re, im, zero in values:
        square = re**2 + im**2
        found.append(Pair(re, im, zero, square if zero is None else square / zero))
    return tuple(found)


def _known(poles: Any, zeros: Iterable[float | None]) -> Prototype:
    """Return the prototype of poles that SciPy found, and of zeros in the order of the pairs."""
    found = [complex(pole) for pole in np.ravel(poles)]
    upper = sorted((pole for pole in found if pole.imag > 0), key=lambda pole: pole.imag)
    real = [-pole.real for pole in found if pole.imag == 0]
    pairs = _pairs((pole.real, pole.imag, zero) for pole, zero in zip(upper, zeros, strict=True))
    return Prototype(pairs, real[0] if real else None, 1.0)
