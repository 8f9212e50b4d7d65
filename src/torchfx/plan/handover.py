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
    with np.errstate(all="ignore"):
        old, new = (_columns(sos.detach().cpu().numpy(), values.ndim - 2) for sos in (before, after))
        s1, s2 = values[..., 0], values[..., 1]
        shown, solvable = _solved(_observability(old), s1, s2 - old[4] * s1)  # O_s s on the right
        level = _levels(new) / _levels(old)
        (a, b), (c, d) = _observability(new)
        first, second = (a * shown[0] + b * shown[1]) * level, (c * shown[0] + d * shown[1]) * level
        found = np.stack(np.broadcast_arrays(first, second + new[4] * first), axis=-1)
    return torch.from_numpy(np.where(solvable[..., None], found, values)).to(state.device)


def _columns(sos: Array, leading: int) -> list[Array]:
    """Return b0, b1, b2, a0, a1, a2, divided by a0: each (sections, ...), as states lie."""
    rows = np.moveaxis(sos / sos[..., 3:4], -2, 0)
    rows = rows.reshape(len(rows), *(1,) * (leading + 2 - rows.ndim), *rows.shape[1:])
    return [rows[..., i] for i in range(6)]


def _levels(columns: list[Array]) -> Array:
    """Return the gain up to each section, (sections, ...): that of a section is the larger one of 0 Hz and fs/2."""
    b0, b1, b2, _, a1, a2 = columns
    gains = np.maximum(abs((b0 + b1 + b2) / (1 + a1 + a2)), abs((b0 - b1 + b2) / (1 - a1 + a2)))
    gains = np.where(gains > 0, gains, 1.0)
    return np.concatenate([np.ones_like(gains[:1]), gains[:-1].cumprod(0)])


def _observability(columns: list[Array]) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Return [C; C A] of the sections as state-variable filters: rows of values (sections, ...)."""
    b0, b1, b2, _, a1, a2 = columns
    al, ga, be = 1 - a1 + a2, 2 * (1 - a2), 1 + a1 + a2
    g, k = np.sqrt(be / al), ga / np.sqrt(al * be)
    high, band, low = (b0 - b1 + b2) / al, 2 * (b0 - b2) / (al * g), (b0 + b1 + b2) / be
    m1, m2 = band - k * high, low - high
    c1 = 1 / (1 + g * (g + k))
    c2 = g * c1
    c3 = g * c2
    first, second = m1 * c1 + m2 * c2, m2 * (1 - c3) - m1 * c2
    return (first, second), (first * (2 * c1 - 1) + second * 2 * c2, second * (1 - 2 * c3) - first * 2 * c2)


def _solved(matrix: tuple[tuple[Array, Array], tuple[Array, Array]], first: Array, second: Array) -> Any:
    """Return the solution of 2 x 2 systems, and where there is one."""
    (a, b), (c, d) = matrix
    determinant = a * d - b * c
    largest = np.maximum(np.maximum(abs(a), abs(b)), np.maximum(abs(c), abs(d)))
    solvable = abs(determinant) > SMALLEST * largest**2
    safe = np.where(solvable, determinant, 1.0)
    solution = (d * first - b * second) / safe, (a * second - c * first) / safe
    return solution, np.broadcast_to(solvable, first.shape)
