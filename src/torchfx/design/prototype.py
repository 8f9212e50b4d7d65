"""From an analogue prototype to second-order sections in PyTorch, for cutoffs given as tensors.

The numbers are SciPy's; gradients flow, and many cutoffs are placed at once. Each section of the prototype is moved to
the cutoff, s -> s/W for a low-pass and s -> W/s for a high-pass, and through the bilinear transform
s = (1 - 1/z) / (1 + 1/z), where W = tan(pi cutoff / fs) lands the cutoff where it belongs (Oppenheim and Schafer,
Discrete-Time Signal Processing, chapter 7).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["place_cutoff"]


def place_cutoff(cutoff: Tensor, fs: float, highpass: bool, poles: npt.NDArray[np.complex128], gain: float) -> Tensor:
    """Return the sections SciPy designs as a differentiable function of the cutoff.

    Args:
        cutoff: Hz, (...).
        fs: sample rate, Hz.
        highpass: whether the high side passes.
        poles: the prototype's poles for a cutoff of 1 rad/s, (order,); all its zeros lie at infinity.
        gain: the passband's gain where the prototype has 0 rad/s.

    Returns:
        float64, (..., sections, 6). As in SciPy's, poles come closer to the unit circle from section to section, one
        of first order comes first, and the whole gain is in the first section.
    """
    edge = torch.tan(math.pi * cutoff.double() / fs)
    kept = sorted((pole for pole in poles if pole.imag >= 0), key=lambda pole: (abs(pole.imag) > 0, pole.real))
    denominators, total = [], torch.full_like(edge, gain)
    for pole in kept:
        numerator, denominator = _section(complex(pole), edge, highpass)
        total = total * numerator / denominator[..., 0]
        denominators.append(denominator / denominator[..., :1])
    zeros = _zeros(denominators, -1.0 if highpass else 1.0, odd=len(poles) % 2 == 1)
    rows = [torch.cat([each.expand_as(row), row], dim=-1) for each, row in zip(zeros, denominators, strict=True)]
    rows[0] = torch.cat([rows[0][..., :3] * total[..., None], rows[0][..., 3:]], dim=-1)
    return torch.stack(rows, dim=-2)


def _zeros(denominators: list[Tensor], side: float, odd: bool) -> list[Tensor]:
    """Return the numerators: two zeros at -side each, but for one zero less where the order is odd.

    SciPy gives poles the zeros nearest to them, from the last section on, and counts a zero at 0 among them where the
    order is odd: the first section whose poles are nearer to 0 than to -side has it.
    """
    like = denominators[0]
    double, single = like.new_tensor((1.0, 2 * side, 1.0)), like.new_tensor((1.0, side, 0.0))
    if not odd:
        return [double for _ in denominators]
    given = torch.zeros_like(like[..., :1], dtype=torch.bool)
    found = []
    for row in reversed(denominators[1:]):
        nearer = (side * row[..., 1:2] < 1) & ~given
        given = given | nearer
        found.append(torch.where(nearer, single, double))
    return [torch.where(given, double, single), *reversed(found)]


def _section(pole: complex, edge: Tensor, highpass: bool) -> tuple[Tensor, Tensor]:
    """Return the factor before the zeros (1 +- 1/z)^n, and the denominator in powers of 1/z, (..., 3)."""
    one = torch.ones_like(edge)
    if pole.imag == 0:
        c = -pole.real
        d1, d0 = (c * one, edge) if highpass else (one, c * edge)
        return d1 if highpass else d0, torch.stack([d0 + d1, d0 - d1, 0 * one], dim=-1)
    c1, c0 = -2 * pole.real, abs(pole) ** 2
    d2, d1, d0 = (c0 * one, c1 * edge, edge**2) if highpass else (one, c1 * edge, c0 * edge**2)
    return d2 if highpass else d0, torch.stack([d2 + d1 + d0, 2 * (d0 - d2), d2 - d1 + d0], dim=-1)
