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

import torch
from torch import Tensor

__all__ = ["sections_state"]

SMALLEST = 1e-9
"""Below this determinant (of a matrix scaled to its largest element) a section does not show its state, such as where a
zero cancels a pole. It stays as it is then."""


def sections_state(before: Tensor, after: Tensor, state: Tensor) -> Tensor:
    """Return the state with which new sections go on where old ones stopped.

    Args:
        before, after: float64 (..., sections, 6).
        state: of the old ones, (sections, ..., 2), SciPy's zi.
    """
    before, after = (sos.expand(*state.shape[1:-1], *sos.shape[-2:]) for sos in (before, after))
    s1, s2 = state.unbind(-1)
    direct = torch.stack([s1, s2 - _columns(before)[4] * s1], dim=-1)  # O_s s
    old, new = _observability(before), _observability(after)
    shown, matrix = _solved(old, direct)
    shown = shown * (_levels(after) / _levels(before))[..., None]
    outputs = (new @ shown[..., None])[..., 0]
    first = outputs[..., 0]
    second = outputs[..., 1] + _columns(after)[4] * first
    found = torch.stack([first, second], dim=-1)
    return torch.where(matrix[..., None], found, state)


def _levels(sos: Tensor) -> Tensor:
    """Return the gain up to each section, (sections, ...): that of a section is the larger one of 0 Hz and fs/2."""
    b0, b1, b2, _, a1, a2 = _columns(sos)
    gains = torch.maximum(((b0 + b1 + b2) / (1 + a1 + a2)).abs(), ((b0 - b1 + b2) / (1 - a1 + a2)).abs())
    gains = torch.where(gains > 0, gains, 1.0)
    return torch.cat([torch.ones_like(gains[:1]), gains[:-1].cumprod(0)])


def _columns(sos: Tensor) -> list[Tensor]:
    """Return b0, b1, b2, a0, a1, a2, divided by a0: each (sections, ...), as states lie."""
    rows = (sos / sos[..., 3:4]).movedim(-2, 0)
    return list(rows.unbind(-1))


def _observability(sos: Tensor) -> Tensor:
    """Return [C; C A] of the sections as state-variable filters, (sections, ..., 2, 2)."""
    b0, b1, b2, _, a1, a2 = _columns(sos)
    al, ga, be = 1 - a1 + a2, 2 * (1 - a2), 1 + a1 + a2
    g, k = torch.sqrt(be / al), ga / torch.sqrt(al * be)
    high, band, low = (b0 - b1 + b2) / al, 2 * (b0 - b2) / (al * g), (b0 + b1 + b2) / be
    m1, m2 = band - k * high, low - high
    c1 = 1 / (1 + g * (g + k))
    c2 = g * c1
    c3 = g * c2
    row = torch.stack([m1 * c1 + m2 * c2, m2 * (1 - c3) - m1 * c2], dim=-1)
    step = torch.stack([torch.stack([2 * c1 - 1, -2 * c2], dim=-1), torch.stack([2 * c2, 1 - 2 * c3], dim=-1)], dim=-2)
    return torch.stack([row, (row[..., None, :] @ step)[..., 0, :]], dim=-2)


def _solved(matrix: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """Return the solution of 2 x 2 systems, and where there is one."""
    (a, b), (c, d) = (row.unbind(-1) for row in matrix.unbind(-2))
    determinant = a * d - b * c
    solvable = determinant.abs() > SMALLEST * matrix.abs().amax((-2, -1)) ** 2
    safe = torch.where(solvable, determinant, 1.0)
    first, second = right.unbind(-1)
    solution = torch.stack([(d * first - b * second) / safe, (a * second - c * first) / safe], dim=-1)
    return solution, solvable.expand(first.shape)
