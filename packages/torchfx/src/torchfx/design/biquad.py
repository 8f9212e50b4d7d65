"""Second-order sections from an analogue prototype: the biquads of the Audio EQ Cookbook, and what is made of them.

Every formula is plain arithmetic. Python numbers and tensors go through the same lines: numbers take a few
microseconds, tensors give one section for each of their values and pass gradients on.

Source: R. Bristow-Johnson, Cookbook formulae for audio EQ biquad filter coefficients (W3C Audio EQ Cookbook).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any, Literal, TypeAlias

import torch
from torch import Tensor

from torchfx.checks import number_text, sample_rate
from torchfx.errors import ArgumentError
from torchfx.parameters import Declaration, Value, choice, frequency, gain_decibels, named, quality, shelf_slope
from torchfx.tensors import broadcast_shapes

__all__ = [
    "BIQUADS", "BiquadType", "band_count", "biquad", "checked", "parametric_eq", "prewarped", "second_order", "section",
    "stacked",
]  # fmt: skip

BiquadType = Literal[
    "lowpass", "highpass", "bandpass", "bandpass_skirt", "notch", "allpass", "peaking", "lowshelf", "highshelf"
]

BIQUADS = (
    "lowpass", "highpass", "bandpass", "bandpass_skirt", "notch", "allpass", "peaking", "lowshelf", "highshelf",
)  # fmt: skip

Polynomial: TypeAlias = tuple[Value, Value, Value]
"""Coefficients of s^2, s and 1."""

Row: TypeAlias = tuple[Value, Value, Value, Value, Value, Value]
"""b0 b1 b2 a0 a1 a2."""

# By 1/Q and the fourth root g of the linear gain, whose square is the cookbook's A. The cutoff is 1 rad/s.
PROTOTYPES: Mapping[str, Callable[[Value, Value], tuple[Polynomial, Polynomial]]] = {
    "lowpass": lambda d, g: ((0.0, 0.0, 1.0), (1.0, d, 1.0)),
    "highpass": lambda d, g: ((1.0, 0.0, 0.0), (1.0, d, 1.0)),
    "bandpass": lambda d, g: ((0.0, d, 0.0), (1.0, d, 1.0)),
    "bandpass_skirt": lambda d, g: ((0.0, 1.0, 0.0), (1.0, d, 1.0)),
    "notch": lambda d, g: ((1.0, 0.0, 1.0), (1.0, d, 1.0)),
    "allpass": lambda d, g: ((1.0, -d, 1.0), (1.0, d, 1.0)),
    "peaking": lambda d, g: ((1.0, d * (g * g), 1.0), (1.0, d / (g * g), 1.0)),
    "lowshelf": lambda d, g: ((g**2, d * g**3, g**4), (g**2, d * g, 1.0)),
    "highshelf": lambda d, g: ((g**4, d * g**3, g**2), (1.0, d * g, g**2)),
}

SHELVES = ("lowshelf", "highshelf")
CUTOFF, Q, GAIN_DB = named("cutoff", frequency()), named("q", quality()), named("gain_db", gain_decibels())
SLOPE, BTYPE = named("slope", shelf_slope()), named("btype", choice(BIQUADS))


def biquad(cutoff: Value, q: Value, gain_db: Value, fs: float, btype: BiquadType, slope: Value | None = None) -> Tensor:
    """Design one of the cookbook's filters.

    Args:
        cutoff: Hz, in (0, fs/2): the corner, the centre, or a shelf's midpoint.
        q: quality factor, in [0.001, 1e6].
        gain_db: gain of a peak or shelf, dB, in [-200, 200]; the other types take no notice of it.
        fs: sample rate, Hz.
        btype: "lowpass", "highpass", "bandpass" (its peak gain is 1), "bandpass_skirt" (its peak gain is q), "notch",
            "allpass", "peaking", "lowshelf" or "highshelf".
        slope: a shelf's slope S in (0, 1] instead of q; 1 is the steepest that stays monotonic.

    Returns:
        float64, (..., 1, 6), a0 = 1. Tensors broadcast with each other and give a section for each of their values,
        differentiably.

    Examples:
        >>> b0, b1, b2, a0, a1, a2 = biquad(1000, 1.0, 6.0, 48_000, "peaking")[0].tolist()
        >>> round(20 * math.log10((b0 + b1 + b2) / (a0 + a1 + a2)), 12)  # 0 Hz is left as it is
        0.0
    """
    return section(_row(cutoff, q, gain_db, fs, btype, slope))


def parametric_eq(
    cutoff: Value | Sequence[float],
    q: Value | Sequence[float],
    gain_db: Value | Sequence[float],
    fs: float,
    btype: BiquadType | Sequence[BiquadType] = "peaking",
) -> Tensor:
    """Design an equaliser of several bands.

    Args:
        cutoff, q, gain_db: as in `biquad`; one value for each band, or one for all. Tensors are (..., bands).
        fs: sample rate, Hz.
        btype: as in `biquad`; one for each band, or one for all.

    Returns:
        float64, (..., bands, 6).

    Raises:
        ArgumentError: a value out of its range, or numbers of bands that differ.

    Examples:
        >>> parametric_eq([100, 1000, 8000], 0.7, [3, -2, 1], 48_000, ["lowshelf", "peaking", "highshelf"]).shape
        torch.Size([3, 6])
    """
    values = [cutoff, q, gain_db]
    bands = band_count(cutoff=cutoff, q=q, gain_db=gain_db, btype=btype)
    if not any(isinstance(value, Tensor) for value in values):
        columns = [_for_each(bands, value) for value in (*values, btype)]
        return torch.cat([biquad(f, d, g, fs, each) for f, d, g, each in zip(*columns, strict=True)])
    device = next(value.device for value in values if isinstance(value, Tensor))
    _check_shapes(cutoff=cutoff, q=q, gain_db=gain_db)
    tensors = [torch.as_tensor(value, dtype=torch.float64, device=device) for value in values]
    cutoffs, qs, gains, _ = torch.broadcast_tensors(*tensors, torch.empty(bands, device=device))
    rows, first = [], 0
    for each, run in groupby(_for_each(bands, btype)):  # neighbours of one type are designed together
        part = slice(first, first := first + len(list(run)))
        rows.append(stacked(_row(cutoffs[..., part], qs[..., part], gains[..., part], fs, each)))
    return torch.cat(rows, dim=-2)


def band_count(**values: Any) -> int:
    """Return the number of bands of parameters, or raise if they differ; each has one value, or one value per band."""
    counts = {
        name: value.shape[-1] if isinstance(value, Tensor) and value.dim() else len(value)
        for name, value in values.items()
        if (isinstance(value, Tensor) and value.dim()) or isinstance(value, (list, tuple))
    }
    several = {count for count in counts.values() if count != 1}
    if len(several) > 1 or 0 in several:
        sizes = ", ".join(f"{count} of {name}" for name, count in counts.items())
        raise ArgumentError(f"every parameter must be one value or one for each band, got {sizes}")
    return several.pop() if several else 1


def _for_each(bands: int, value: Any) -> list[Any]:
    """Return a value for each band."""
    given = list(value) if isinstance(value, (list, tuple)) else [value]
    return given * (bands // len(given))


def second_order(numerator: Polynomial, denominator: Polynomial, cutoff: Value, fs: float) -> Row:
    """Return the bilinear transform of a prototype of second order, moved from 1 rad/s to the cutoff, with a0 = 1.

    s = (1 - 1/z) / (1 + 1/z) / t, t = tan(pi cutoff / fs), multiplied out by (t (1 + 1/z))^2. The cookbook's formulas
    are these, times cos^2(pi cutoff / fs); they lose digits of low cutoffs in 1 - cos(w).
    """
    t = prewarped(cutoff, fs)
    tt = t * t
    (b0, b1, b2), (a0, a1, a2) = (
        (p2 + p1 * t + p0 * tt, 2 * (p0 * tt - p2), p2 - p1 * t + p0 * tt) for p2, p1, p0 in (numerator, denominator)
    )
    return b0 / a0, b1 / a0, b2 / a0, 1.0, a1 / a0, a2 / a0


def _check_shapes(**values: Value | Sequence[float]) -> None:
    """Raise where tensors don't broadcast."""
    shapes = {name: value.shape for name, value in values.items() if isinstance(value, Tensor)}
    if len(shapes) > 1:
        broadcast_shapes(**shapes)


def checked(declaration: Declaration, value: Value, rate: float) -> Any:
    """Return a value in its range: a float, or a float64 tensor."""
    found = declaration.check(value, rate)
    return found.double() if isinstance(found, Tensor) else found


def prewarped(cutoff: Value, fs: float) -> Any:
    """Return tan(pi cutoff / fs), the analogue frequency that the bilinear transform moves to the cutoff."""
    angle = math.pi * cutoff / fs
    return angle.tan() if isinstance(angle, Tensor) else math.tan(angle)


def section(row: Row) -> Tensor:
    """Return a row as a section, float64, (..., 1, 6); tensors in it broadcast."""
    return stacked(row).unsqueeze(-2)


def stacked(values: Sequence[Value]) -> Tensor:
    """Return values as float64 (..., n); tensors among them broadcast."""
    like = next((each for each in values if isinstance(each, Tensor)), None)
    if like is None:
        return torch.tensor(values, dtype=torch.float64, device="cpu")
    given = [each if isinstance(each, Tensor) else like.new_tensor(each, dtype=torch.float64) for each in values]
    return torch.stack(torch.broadcast_tensors(*given), dim=-1)


def _row(cutoff: Value, q: Value, gain_db: Value, fs: float, btype: BiquadType, slope: Value | None = None) -> Row:
    rate = sample_rate(fs)
    btype = BTYPE.check(btype, rate)
    f, q, gain_db = checked(CUTOFF, cutoff, rate), checked(Q, q, rate), checked(GAIN_DB, gain_db, rate)
    _check_shapes(cutoff=f, q=q, gain_db=gain_db)
    root, damping = 10 ** (gain_db / 80), 1 / q
    if slope is not None and btype in SHELVES:
        damping = ((root**2 + root**-2) * (1 / checked(SLOPE, slope, rate) - 1) + 2) ** 0.5
    row = second_order(*PROTOTYPES[btype](damping, root), f, rate)
    a1, a2 = row[4], row[5]
    if isinstance(a1, float) and isinstance(a2, float) and not (abs(a2) < 1 and abs(a1) < 1 + a2):
        raise ArgumentError(
            f"cutoff {number_text(f)} Hz and a damping of {damping:.3g} at fs {number_text(rate)} Hz make a filter "
            "that float64 cannot hold; lower q, or move the cutoff away from 0 and fs/2"
        )
    return row
