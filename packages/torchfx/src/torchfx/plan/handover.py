"""What a filter's state becomes when its coefficients change while it runs.

The state of a direct form depends on the coefficients: handed on as it is, a low-pass that moves from 20 to 25 Hz
jumps. A section's state is therefore turned into that of the same section as a trapezoidal state-variable filter, whose
two integrators hold what the capacitors of the analogue circuit hold, and back with the new coefficients.

A section with the denominator 1 + a1/z + a2/z^2 is the bilinear transform of al s^2 + ga s + be, with
al = 1 - a1 + a2, ga = 2 (1 - a2), be = 1 + a1 + a2: a state-variable filter with g = sqrt(be / al) and
k = ga / sqrt(al be). Its numerator likewise gives the mix of high, band and low pass (A. Simper, Solving the continuous
SVF equations using trapezoidal integration, 2013). Both are realisations of one system, so their states s and v agree
where they make the same two outputs from silence. With the gains low = (b0 + b1 + b2) / be at 0 Hz and
high = (b0 - b1 + b2) / al at fs/2 that comes to

    s1 = (b0 - high) / g v1 + (low - b0) v2
    s2 = (b2 - a2 high) / g v1 + (b2 - a2 low) v2

The integrators hold what the section's input has in level, and that depends on the gains of the sections before it (a
design may put its whole gain into the first one): states are scaled with them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

__all__ = ["sections_state"]

Array = npt.NDArray[Any]

SMALLEST = 1e-9
"""Below this determinant (of a matrix scaled to its largest element) a section does not show its state, such as where a
zero cancels a pole. It stays as it is then."""


def sections_state(before: Tensor, after: Tensor, state: Tensor) -> Tensor:
    """Return the state with which new sections go on where old ones stopped.

    In NumPy: a live signal waits for it, and PyTorch takes several times as long for so few numbers.

    Args:
        before, after: float64 (..., sections, 6).
        state: of the old ones, (sections, ..., 2), SciPy's zi.
    """
    values = state.detach().cpu().numpy()
    both = [sos.detach().cpu().numpy() for sos in (before, after)]
    if both[0].shape != both[1].shape:
        both = list(np.broadcast_arrays(*both))
    coefficients = np.array(both)
    lead = coefficients.ndim - 3  # (2, ..., sections, 6) becomes 6 of (2, sections, ...), as states lie
    coefficients = coefficients.transpose(lead + 2, 0, lead + 1, *range(1, lead + 1))
    coefficients = coefficients.reshape(
        *coefficients.shape[:3], *(1,) * (values.ndim - 2 - lead), *coefficients.shape[3:]
    )
    with np.errstate(all="ignore"):
        b0, b1, b2, _, a1, a2 = coefficients / coefficients[3]
        be, al = 1 + a1 + a2, 1 - a1 + a2
        low, high = (b0 + b1 + b2) / be, (b0 - b1 + b2) / al
        g = np.sqrt(be / al)
        matrices = np.array([(b0 - high) / g, low - b0, (b2 - a2 * high) / g, b2 - a2 * low])
        (a, b, c, d), (new_a, new_b, new_c, new_d) = matrices.swapaxes(0, 1)
        determinant = a * d - b * c
        kept = ~(abs(determinant) > SMALLEST * abs(matrices[:, 0]).max(0) ** 2)  # NaNs too
        scale = _levels(np.maximum(abs(low), abs(high))) / determinant
        s1, s2 = values[..., 0], values[..., 1]
        v1, v2 = (d * s1 - b * s2) * scale, (a * s2 - c * s1) * scale
        found = np.empty_like(values)
        found[..., 0], found[..., 1] = new_a * v1 + new_b * v2, new_c * v1 + new_d * v2
    if kept.any():
        found = np.where(np.broadcast_to(kept, s1.shape)[..., None], values, found)
    return torch.from_numpy(found).to(state.device)


def _levels(gains: Array) -> Array:
    """Return by how much gains (2, sections, ...) up to each section grow from old to new ones, (sections, ...)."""
    gains[~(gains > 0)] = 1.0
    growth: Array = np.ones_like(gains[0])
    (gains[1, :-1] / gains[0, :-1]).cumprod(0, out=growth[1:])
    return growth
