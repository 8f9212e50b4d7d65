"""Polynomials and their poles: what a denominator of any order is as second-order sections."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from torchfx.design.operator import design_operator

if TYPE_CHECKING:
    from torchfx.design.operator import Coefficients

__all__ = ["all_pole_sections", "largest_radius"]


def largest_radius(a: Tensor) -> float:
    """Return the largest distance from 0 of the poles of polynomials a0 + a1/z + ..., (..., n); 0 without poles."""
    rows = a.reshape(-1, a.shape[-1]).cpu().numpy()
    return max((float(abs(np.roots(row)).max(initial=0.0)) for row in rows), default=0.0)


def _shape(a: Tensor) -> tuple[int, ...]:
    return (*a.shape[:-1], a.shape[-1] // 2, 6)


@design_operator("all_pole_sections(Tensor a) -> Tensor", shape=_shape)
def all_pole_sections(a: Tensor) -> Coefficients:
    """Return 1 / (1 + a1/a0/z + ...) as second-order sections, for polynomials (..., n >= 2) with a0 not zero.

    The poles are the eigenvalues of the companion matrix (`numpy.roots`), paired by `scipy.signal.zpk2sos`.
    """
    from scipy.signal import zpk2sos

    rows = a.detach().reshape(-1, a.shape[-1]).cpu().double().numpy()
    no_zeros = np.empty(0)
    found = [zpk2sos(no_zeros, np.roots(row).astype(np.complex128), 1.0) for row in rows]
    return np.array(found, np.float64).reshape(_shape(a))
