"""The IIR designs in PyTorch, for a cutoff that is learned: the numbers are SciPy's, and gradients flow.

Each section of the analogue prototype is moved to the cutoff, s -> s/W for a low-pass and s -> W/s for a high-pass, and
through the bilinear transform s = (1 - 1/z) / (1 + 1/z), where W = tan(pi cutoff / fs) lands the cutoff where it
belongs (Oppenheim and Schafer, Discrete-Time Signal Processing, chapter 7).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["follow_cutoff"]


def follow_cutoff(
    cutoff: Tensor, fs: float, highpass: bool, poles: npt.NDArray[np.complex128], gain: float, sos: Tensor
) -> Tensor:
    """Return the sections SciPy designs as a differentiable function of the cutoff.

    Args:
        cutoff: Hz, a tensor holding one number.
        fs: sample rate, Hz.
        highpass: whether the high side passes.
        poles: the prototype's poles for a cutoff of 1 rad/s, (order,).
        gain: the passband's gain where the prototype has 0 rad/s.
        sos: SciPy's design at this cutoff: says in which order sections come and which zeros each of them holds.

    Returns:
        float64, (sections, 6).
    """
    edge = torch.tan(math.pi * cutoff.double().reshape(()) / fs)
    numerators, denominators = [], []
    for pole in poles[poles.imag >= 0]:
        numerator, denominator = _section(pole, edge, highpass)
        numerators.append(numerator / denominator[0])
        denominators.append(denominator / denominator[0])
    rows = torch.stack(denominators)
    rows = rows[_nearest(sos[:, 3:], rows.detach())]
    zeros = sos[:, :3] / sos[:, :1]
    total = torch.stack(numerators).prod() * gain
    return torch.cat([torch.cat([total * zeros[:1], zeros[1:]]), rows], dim=1)


def _section(pole: complex, edge: Tensor, highpass: bool) -> tuple[Tensor, Tensor]:
    """Return the factor before the zeros (1 +- 1/z)^n, and the denominator in powers of 1/z, (3,)."""
    one = torch.ones_like(edge)
    if pole.imag == 0:
        c = -pole.real
        d1, d0 = (c * one, edge) if highpass else (one, c * edge)
        return d1 if highpass else d0, torch.stack([d0 + d1, d0 - d1, 0 * one])
    c1, c0 = -2 * pole.real, abs(pole) ** 2
    d2, d1, d0 = (c0 * one, c1 * edge, edge**2) if highpass else (one, c1 * edge, c0 * edge**2)
    return d2 if highpass else d0, torch.stack([d2 + d1 + d0, 2 * (d0 - d2), d2 - d1 + d0])


def _nearest(wanted: Tensor, rows: Tensor) -> Tensor:
    """Return for each wanted row the index of the row that equals it but for rounding."""
    return torch.cdist(wanted, rows).argmin(1)
