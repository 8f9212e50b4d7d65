"""From an analogue prototype to second-order sections, for edges that are numbers or tensors.

The prototype is moved to the edges, s -> s/W for one, s -> (s^2 + W^2) / (B s) for the two of a band, and through the
bilinear transform s = (1 - 1/z) / (1 + 1/z), where tan(pi f / fs) lands an edge f where it belongs (A. V. Oppenheim,
R. W. Schafer, Discrete-Time Signal Processing, chapter 7).

The arithmetic is real, works on floats and on tensors alike, and does not cancel: a band from 20 Hz to 20 kHz keeps all
digits of its lower poles.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from torchfx.design.prototype import Pair, Prototype

__all__ = ["sections", "stacked"]

Row = list[Any]
"""b0 b1 b2 a0 a1 a2 of a section: floats, or floats and tensors (...)."""


def sections(edges: Sequence[Any], fs: float, made: Prototype, high: bool) -> list[Row]:
    """Return the sections of a filter.

    The order is the prototype's: a real pole first, then its pairs, and of a band's upper and lower poles the lower
    ones last. It does not depend on the edges, so that a section stays what it is while they move. Poles have the zeros
    next to them, and the whole gain is in the first section.

    Args:
        edges: Hz, floats or tensors (...); one for a low-pass or high-pass, two for a band.
        fs: sample rate, Hz.
        made: the prototype, of a high-pass if `high`.
        high: whether fs/2 passes, as in a high-pass or a band-stop.
    """
    m: Any = torch if isinstance(edges[0], Tensor) else math
    found: list[tuple[Any, Row]]  # gain and row of each section
    if len(edges) == 1:
        warped = _tan(m, edges[0], fs)
        found = [] if made.pole is None else [_first_order(made.pole * warped, high)]
        found += [_moved(pair, warped) for pair in made.pairs]
        if made.pole is not None and made.pairs and not any(pair.zero for pair in made.pairs):
            _place_zeros([row for _, row in found], -1.0 if high else 1.0, m)
    else:
        low, up = (_tan(m, edge, fs) for edge in edges)
        middle = low * up
        # tan u - tan v = sin(u - v) / (cos u cos v)
        width = m.sin(math.pi / fs * (edges[1] - edges[0])) / (_cos(m, edges[0], fs) * _cos(m, edges[1], fs))
        found = [] if made.pole is None else [_real_band(made.pole * width, middle, high)]
        for pair in made.pairs:
            found += _split(pair, middle, width, m)
    gain = made.gain
    for factor, _ in found:
        gain = gain * factor
    rows = [row for _, row in found]
    rows[0][:3] = [gain * b for b in rows[0][:3]]
    return rows


def stacked(rows: list[Row]) -> Tensor:
    """Return rows of tensors as one tensor, float64 (..., sections, 6)."""
    like: Tensor = rows[0][0]
    values = [
        [value.to(like) if isinstance(value, Tensor) else torch.full_like(like, value) for value in row] for row in rows
    ]
    return torch.stack([torch.stack(row, dim=-1) for row in values], dim=-2)


def _tan(m: Any, edge: Any, fs: float) -> Any:
    """Return tan(pi edge / fs), with all digits next to fs/2 too."""
    return m.sin(math.pi / fs * edge) / _cos(m, edge, fs)


def _cos(m: Any, edge: Any, fs: float) -> Any:
    return m.sin(math.pi * (fs / 2 - edge) / fs)


def _moved(pair: Pair, warped: Any) -> tuple[Any, Row]:
    """Return a pair at one edge."""
    d1, d0 = -2 * pair.re * warped, (pair.re**2 + pair.im**2) * warped * warped
    if pair.zero is None:
        return _section(None, pair.factor * warped * warped, d1, d0)
    return _section(pair.zero * warped * warped, pair.factor, d1, d0)


def _split(pair: Pair, middle: Any, width: Any, m: Any) -> list[tuple[Any, Row]]:
    """Return a pair of the prototype as the two pairs of a band: above the middle and below it.

    A pole p becomes the roots of s^2 - p B s + W^2, which are q + D and W^2 / (q + D) with q = p B / 2 and
    D^2 = q^2 - W^2. Of the two roots D the one in q's quadrant is taken: nothing cancels. All-pole prototypes have
    their zeros at infinity above the middle and at 0 below it.
    """
    re, im = pair.re / 2 * width, pair.im / 2 * width
    x, y = re * re - im * im - middle, 2 * re * im
    longer = m.sqrt((m.sqrt(x * x + y * y) + abs(x)) / 2)
    shorter = y / (2 * longer)  # negative, as y
    where: Any = torch.where if m is torch else _where
    re, im = re + where(x > 0, -longer, shorter), im + where(x > 0, -shorter, longer)
    d1, d0 = -2 * re, re * re + im * im
    mirror = middle / d0
    if pair.zero is None:
        upper_zero, lower_zero, factor = None, 0.0 * middle, pair.factor * width * width
    else:
        half = math.sqrt(pair.zero) / 2 * width
        upper = half + m.sqrt(half * half + middle)
        upper_zero, factor = upper * upper, pair.factor
        lower_zero = middle * (middle / upper_zero)
    return [_section(upper_zero, factor, d1, d0), _section(lower_zero, 1.0, d1 * mirror, middle * mirror)]


def _section(zero: Any, factor: Any, d1: Any, d0: Any) -> tuple[Any, Row]:
    """Return factor (s^2 + zero) / (s^2 + d1 s + d0), or factor / (s^2 + d1 s + d0) where zero is None."""
    total = 1 + d1 + d0
    denominator = _denominator(d1, d0, total)
    if zero is None:
        return factor / total, [1.0, 2.0, 1.0, *denominator]
    return factor * (1 + zero) / total, [1.0, 2 * (zero - 1) / (zero + 1), 1.0, *denominator]


def _denominator(d1: Any, d0: Any, total: Any) -> Row:
    """Return a0 a1 a2 of s^2 + d1 s + d0: small distances from -2 and 1 keep their digits."""
    return [1.0, 2 * (d1 + 2 * d0) / total - 2, 1 - 2 * d1 / total]


def _first_order(pole: Any, high: bool) -> tuple[Any, Row]:
    """Return s / (s + pole), or pole / (s + pole)."""
    row = [1.0, -1.0 if high else 1.0, 0.0, 1.0, 2 * pole / (1 + pole) - 1, 0.0]
    return (1.0 if high else pole) / (1 + pole), row


def _real_band(pole: Any, middle: Any, high: bool) -> tuple[Any, Row]:
    """Return a real pole of the prototype, times the width, as the pair of a band."""
    if high:
        return _section(middle, 1.0, pole, middle)
    total = 1 + pole + middle
    return pole / total, [1.0, 0.0, -1.0, *_denominator(pole, middle, total)]


def _place_zeros(rows: list[Row], side: float, m: Any) -> None:
    """Give the zeros of an all-pole filter of odd order to the sections SciPy gives them to.

    It counts a zero at 0 among them. Poles get the zero next to them, from the last section on: the first one whose
    poles are nearer to 0 than to -side has the zero at 0, and the section of first order two at -side.
    """
    where: Any = torch.where if m is torch else _where
    given: Any = False
    for row in reversed(rows[1:]):
        nearer = (side * row[4] < 1) > given
        row[1], row[2] = where(nearer, side, 2 * side), where(nearer, 0.0, 1.0)
        given = given | nearer
    rows[0][1], rows[0][2] = where(given, 2 * side, side), where(given, 1.0, 0.0)


def _where(condition: bool, yes: Any, no: Any) -> Any:
    return yes if condition else no
