"""Takes over the state of a step when the step's parameters change while a signal runs.

A state is handed over only where it cannot make the new filter louder than the old one. Everywhere else the new filter
starts from rest. Either way it runs unheard until it has forgotten how it started. The choice depends on coefficients
and shapes alone, never on samples: a live engine copies states between two blocks and has no time to look at them.

Sections: the state of a direct form depends on the coefficients. Handed on as it is, a low-pass that moves from 20 to
25 Hz jumps. A section's state is therefore turned into that of the same section as a trapezoidal state-variable filter,
whose two integrators hold what the capacitors of the analogue circuit hold, and back with the new coefficients.

A section with the denominator 1 + a1/z + a2/z^2 is the bilinear transform of al s^2 + ga s + be, with
al = 1 - a1 + a2, ga = 2 (1 - a2), be = 1 + a1 + a2: a state-variable filter with g = sqrt(be / al) and
k = ga / sqrt(al be). Its numerator likewise gives the mix of high, band and low pass (A. Simper, Solving the continuous
SVF equations using trapezoidal integration, 2013). Both are realisations of one system, so their states s and v agree
where they make the same two outputs from silence. With the gains low = (b0 + b1 + b2) / be at 0 Hz and
high = (b0 - b1 + b2) / al at fs/2 is

    s1 = (b0 - high) / g v1 + (low - b0) v2
    s2 = (b2 - a2 high) / g v1 + (b2 - a2 low) v2

A section of first order (a2 = b2 = 0) has one integrator, s1 = (low - b0) v2. The integrators hold what the section's
input has in level, which depends on the gains of the sections before it (a design may put its whole gain into the first
one): states are scaled with them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

__all__ = [
    "UNKNOWN_WAIT_S",
    "Handover",
    "Move",
    "eased",
    "kept",
    "kept_lines",
    "memory_samples",
    "samples",
    "sections_handover",
]

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]

SMALLEST = 1e-7
"""Below this determinant (of a matrix scaled to its largest element) a section's state says too little about its
integrators, such as where a zero almost cancels a pole. The section starts from rest."""

NEAR_LEVEL = 0.25
"""How far the gain in front of a section may move, as a natural logarithm, for its state to be handed over.

A design may put its whole gain, of 1e-6, into the first section."""

NEAR_CORNER, NEAR_GAIN = 0.5, 0.25
"""How far the corner frequency and the damping (as natural logarithms) and the gains (relative to the largest) of a
section may move for `HANDED_WAIT_S` to be enough."""

FORGOTTEN = 1e-2
"""How much of a state's tail may be left after `memory_samples`, relative to its largest sample: an upper bound."""

LONGEST_WAIT_S = 0.5
"""The longest time that a new filter runs unheard; one that decays more slowly is output before it has settled."""

UNKNOWN_WAIT_S = 0.05
"""How long a step runs unheard whose memory is not known: ten times the default attack of the detectors."""

HANDED_WAIT_S = 0.01
"""The longest time that a filter runs unheard if it got the state of one with nearly equal frequencies and gains."""

RAMP_S = 0.01
"""The fade at both ends of what a delay line keeps, where its length or its input changes."""

SHORTEST_RAMP_S = 0.002
"""The shortest of these fades: a line that keeps too little for two of them starts empty."""


@dataclass(frozen=True, eq=False)
class Move:
    """Where a tensor of the new state comes from.

    Attributes:
        source: the place of the old state's tensor.
        rows: for each row (all dimensions but the last) of the new tensor the row of the old one; None: the same.
        parts: for each, where it begins in old and new rows, and its length; None: whole rows.
        ramp: each part fades in and out over this number of samples, at most half of its length.
        matrices: float64 (..., 2, 2), by which the last dimension is multiplied; broadcast with the tensor.
    """

    source: int
    rows: tuple[int, ...] | None = None
    parts: tuple[tuple[int, int, int], ...] | None = None
    ramp: int = 0
    matrices: Tensor | None = None


class Handover(NamedTuple):
    """How a step takes over from another one.

    Attributes:
        moves: for each tensor of the new state where it comes from; None: rest.
        waiting: how many samples the new step runs before its output is used.
        rises: whether its input fades in, so that no jump enters a delay line and comes out later.
    """

    moves: tuple[Move | None, ...]
    waiting: int = 0
    rises: bool = False


def kept(old: Sequence[Tensor], new: Sequence[Tensor], rate: float | None, waiting: int = 0) -> Handover:
    """Return the handover of states whose meaning does not depend on parameters: levels, phases, past input samples.

    A tensor of another length keeps its latest samples. If channels are merged, the first one's values are kept;
    if they are split, all get the same. Tensors of any other shape start from rest, and the step runs unheard for a
    time.
    """
    moves = tuple(_kept(i, old, value) for i, value in enumerate(new))
    if any(move is None and value.numel() for move, value in zip(moves, new, strict=True)):
        waiting = max(waiting, samples(UNKNOWN_WAIT_S, rate))
    return Handover(moves, waiting)


def eased(along: Tensor) -> Tensor:
    """Return the curve of all fades, 3 u^2 - 2 u^3 for u from 0 to 1: it has no corners, which would be audible."""
    along = along.clamp(0, 1)
    return along * along * (3 - 2 * along)


def samples(seconds: float, rate: float | None) -> int:
    """Return a time in samples, to the nearest; without a rate as at 48 kHz."""
    return int(seconds * (rate or 48_000) + 0.5)


def kept_lines(source: int, old: Sequence[int], new: Sequence[int], rate: float | None) -> Move | None:
    """Return the move of delay lines (..., sum of delays), one after the other: the latest samples of each.

    The kept samples fade in and out, since their new neighbours are silence or do not continue them.
    """
    if len(old) != len(new):
        return None
    parts, at, to = [], 0, 0
    for before, after in zip(old, new, strict=True):
        count = min(before, after)
        if count >= 2 * samples(SHORTEST_RAMP_S, rate):
            parts.append((at + before - count, to + after - count, count))
        at, to = at + before, to + after
    return Move(source, parts=tuple(parts), ramp=max(1, samples(RAMP_S, rate)))


def _kept(i: int, old: Sequence[Tensor], new: Tensor) -> Move | None:
    if i >= len(old) or not new.numel() or not old[i].numel() or old[i].dtype != new.dtype or old[i].dim() != new.dim():
        return None
    if old[i].shape == new.shape:
        return Move(i)
    rows = _rows(old[i].shape[:-1], new.shape[:-1]) if new.dim() else None
    if rows is None:
        return None
    before, after = old[i].shape[-1], new.shape[-1]
    if before != after and 1 in {before, after} and new.dim() == 1:  # the last dimension counts channels
        return Move(i, parts=tuple((0 if after == 1 else min(c, before - 1), c, 1) for c in range(after)))
    count = min(before, after)
    return Move(i, rows, ((before - count, after - count, count),))


def _rows(old: Sequence[int], new: Sequence[int]) -> tuple[int, ...] | None:
    """Return for each new row the old one that it continues, or None where they don't correspond."""
    index = torch.arange(math.prod(old)).reshape(tuple(old))
    for dim, (before, after) in enumerate(zip(old, new, strict=True)):
        if after == 1 and before > 1:
            index = index.narrow(dim, 0, 1)
        elif before not in {1, after}:
            return None
    return tuple(index.expand(tuple(new)).flatten().tolist())


def sections_handover(
    source: int, before: Tensor | None, after: Tensor, state: Tensor | None, rate: float | None
) -> tuple[Move | None, int]:
    """Return the move of a cascade's state, None for rest, and how long the new one runs unheard, in samples.

    Args:
        source: the place of the old state's tensor.
        before, after: float64 (..., sections, 6); None: there were no sections.
        state: of the old ones, (sections, ..., 2), SciPy's zi; its values do not matter.
        rate: sample rate, Hz.
    """
    if before is not None and before.shape == after.shape and torch.equal(before, after):
        return Move(source), 0
    waiting = memory_samples(after, rate)
    if before is not None and state is not None and before.shape[-2] == after.shape[-2]:
        found = _matrices(before, after, state)
        if found is not None:
            matrices, is_near = found
            return Move(source, matrices=matrices), min(waiting, samples(HANDED_WAIT_S, rate)) if is_near else waiting
    return None, waiting


def memory_samples(sos: Tensor, rate: float | None) -> int:
    """Return how many samples sections (..., sections, 6) take to forget how they started: an upper bound, cut off.

    The envelope of a cascade's tail is no longer than that of real poles of the same radii, whose cascade answers a
    click like the density of a sum of exponential times. The equation solved here is Chernoff's bound for that sum.
    """
    rows = sos.detach().cpu().numpy()
    with np.errstate(all="ignore"):
        a1, a2 = rows[..., 4] / rows[..., 3], rows[..., 5] / rows[..., 3]
        root = np.sqrt((a1 * a1 - 4 * a2).astype(complex))
        radii = abs(np.stack([-a1 + root, -a1 - root], axis=-1)) / 2
        rates = -np.log(np.clip(radii, 1e-12, 1 - 1e-12)).reshape(*rows.shape[:-2], -1)
        shares = np.linspace(0.3, 0.95, 14)[:, None]
        slowest = rates.min(-1, keepdims=True)[..., None]
        thetas = shares * slowest
        bounds = (-math.log(FORGOTTEN) - np.log1p(-thetas / rates[..., None, :]).sum(-1, keepdims=True)) / thetas
    return min(math.ceil(float(bounds.min(-2).max())), samples(LONGEST_WAIT_S, rate))


def _matrices(before: Tensor, after: Tensor, state: Tensor) -> tuple[Tensor, bool] | None:
    """Return the matrices (sections, ..., 2, 2) between states, and whether frequencies and gains hardly move.

    None where the new filter could be louder than the old one.

    In NumPy: a live signal waits for it, and PyTorch takes several times as long for a few numbers.
    """
    both = [sos.detach().cpu().numpy() for sos in (before, after)]
    if both[0].shape != both[1].shape:
        both = list(np.broadcast_arrays(*both))
    coefficients = np.array(both)
    lead = coefficients.ndim - 3  # (2, ..., sections, 6) becomes 6 of (2, sections, ...), as states lie
    coefficients = coefficients.transpose(lead + 2, 0, lead + 1, *range(1, lead + 1))
    coefficients = coefficients.reshape(
        *coefficients.shape[:3], *(1,) * (state.dim() - 2 - lead), *coefficients.shape[3:]
    )
    with np.errstate(all="ignore"):
        b0, b1, b2, _, a1, a2 = coefficients / coefficients[3]
        be, al = 1 + a1 + a2, 1 - a1 + a2
        low, high = (b0 + b1 + b2) / be, (b0 - b1 + b2) / al
        g = np.sqrt(be / al)
        first_order = ((a2 == 0) & (b2 == 0)).all(0)
        m = np.array([(b0 - high) / g, low - b0, (b2 - a2 * high) / g, b2 - a2 * low])
        m[:, :, first_order] = np.array([0 * low, low - b0, 1 + 0 * low, 0 * low])[:, :, first_order]
        (a, b, c, d), (new_a, new_b, new_c, new_d) = m.swapaxes(0, 1)
        determinant = a * d - b * c
        shown = abs(determinant) > SMALLEST * abs(m[:, 0]).max(0) ** 2
        scale = _levels(np.maximum(abs(low), abs(high)))
        damping = abs(1 - a2) / np.sqrt(al * be)
        moved = np.maximum(abs(np.log(g[1] / g[0])), abs(np.log(damping[1] / damping[0])))
        moved[first_order] = 0.0
        mixes = np.array([low, high, (b0 - b2) / np.sqrt(al * be)])
        mixed = abs(mixes[:, 1] - mixes[:, 0]).max(0) / abs(mixes).max((0, 1))
        if not (abs(np.log(scale)) <= NEAR_LEVEL).all():  # NaNs too
            return None
        scale = np.where(shown, scale / determinant, 0.0)  # what adds next to nothing starts from rest
        found = np.array(
            [[new_a * d - new_b * c, new_b * a - new_a * b], [new_c * d - new_d * c, new_d * a - new_c * b]]
        )
        is_near = bool(((moved <= NEAR_CORNER) & (mixed <= NEAR_GAIN)).all())
    return torch.from_numpy(np.nan_to_num(np.moveaxis(found * scale, (0, 1), (-2, -1))).copy()), is_near


def _levels(gains: Array) -> Array:
    """Return by how much gains (2, sections, ...) up to each section grow from old to new ones, (sections, ...)."""
    gains[~(gains > 0)] = 1.0
    growth: Array = np.ones_like(gains[0])
    (gains[1, :-1] / gains[0, :-1]).cumprod(0, out=growth[1:])
    return growth
