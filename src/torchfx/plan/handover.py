"""What a filter's state becomes when its coefficients change while it runs.

The state of a direct form depends on the coefficients: handed on as it is, a low-pass that moves from 20 to 25 Hz
jumps. A section's state is therefore turned into that of the same section as a trapezoidal state-variable filter, whose
two integrators hold what the capacitors of the analogue circuit hold, and back with the new coefficients.

A section with the denominator 1 + a1/z + a2/z^2 is the bilinear transform of al s^2 + ga s + be, with
al = 1 - a1 + a2, ga = 2 (1 - a2), be = 1 + a1 + a2: a state-variable filter with g = sqrt(be / al) and
k = ga / sqrt(al be). Its numerator likewise gives the mix of high, band and low pass (A. Simper, Solving the continuous
SVF equations using trapezoidal integration, 2013). Both are realisations of one system; their states agree where they
make the same two outputs from silence: O_v v = O_s s, with the observability matrices O = [C; C A].

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
        low, high = b0 + b1 + b2, b0 - b1 + b2
        be, al, ga = 1 + a1 + a2, 1 - a1 + a2, 2 - 2 * a2
        level = _levels(abs(low / be), abs(high / al))
        g, k = np.sqrt(be / al), ga / np.sqrt(al * be)
        # The rows of [C; C A] of the sections as state-variable filters.
        low, high = low / be, high / al
        m1, m2 = 2 * (b0 - b2) / (al * g) - k * high, low - high
        c1 = 1 / (1 + g * (g + k))
        c2 = g * c1
        c3 = g * c2
        first, second = m1 * c1 + m2 * c2, m2 * (1 - c3) - m1 * c2
        third, fourth = first * (2 * c1 - 1) + second * 2 * c2, second * (1 - 2 * c3) - first * 2 * c2
        # v from O_v v = O_s s with the old sections, then s from the same with the new ones.
        (a, new_a), (b, new_b), (c, new_c), (d, new_d) = first, second, third, fourth
        s1 = values[..., 0]
        s2 = values[..., 1] - a1[0] * s1
        determinant = a * d - b * c
        largest = np.maximum(np.maximum(abs(a), abs(b)), np.maximum(abs(c), abs(d)))
        scale = level / determinant
        v1, v2 = (d * s1 - b * s2) * scale, (a * s2 - c * s1) * scale
        found = np.empty_like(values)
        s1 = found[..., 0] = new_a * v1 + new_b * v2
        found[..., 1] = new_c * v1 + new_d * v2 + a1[1] * s1
        kept = ~(abs(determinant) > SMALLEST * largest**2)  # NaNs too
    if kept.any():
        found = np.where(np.broadcast_to(kept, s1.shape)[..., None], values, found)
    return torch.from_numpy(found).to(state.device)


def _levels(at_zero: Array, at_half: Array) -> Array:
    """Return by how much the gain up to each section has grown, (sections, ...), from old to new ones.

    Args:
        at_zero, at_half: gains of the sections at 0 Hz and fs/2, (2, sections, ...): a section's is the larger one.
    """
    gains = np.maximum(at_zero, at_half)
    gains[~(gains > 0)] = 1.0
    growth: Array = np.ones_like(gains[0])
    (gains[1, :-1] / gains[0, :-1]).cumprod(0, out=growth[1:])
    return growth
