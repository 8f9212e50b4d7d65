"""Linkwitz-Riley filters and crossovers: Butterworth filters run twice, whose bands add up to an all-pass."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from torchfx.checks import sample_rate
from torchfx.design.iir import Cutoff, butterworth
from torchfx.errors import ArgumentError
from torchfx.parameters import choice, count, frequencies, named
from torchfx.tensors import is_readable

__all__ = ["MOST_LINKWITZ_RILEY", "SIDES", "check_even", "crossover", "linkwitz_riley"]

Side = Literal["lowpass", "highpass"]
SIDES = ("lowpass", "highpass")
MOST_LINKWITZ_RILEY = 100
CUTOFFS = named("cutoffs", frequencies(learnable=True))
ORDER = named("order", count(low=2, high=MOST_LINKWITZ_RILEY))
BTYPE = named("btype", choice(SIDES))


def linkwitz_riley(cutoff: float | Tensor, order: int, fs: float, btype: Side = "lowpass") -> Tensor:
    """Design a Linkwitz-Riley filter: -6 dB at the cutoff, where low-pass and high-pass are in phase.

    It is a Butterworth filter of half the order, twice (S. H. Linkwitz, Active Crossover Networks for Noncoincident
    Drivers, J. Audio Eng. Soc. 24, 1976). For orders 4, 8, ... low-pass and high-pass add up to an all-pass; for
    orders 2, 6, ... the low-pass less the high-pass does.

    Args:
        cutoff: Hz, in (0, fs/2); a tensor (...) gives a filter for each of its values, differentiably.
        order: even, in [2, 100].
        fs: sample rate, Hz.
        btype: "lowpass" or "highpass".

    Returns:
        float64, (..., sections, 6), rows b0 b1 b2 a0 a1 a2.

    Examples:
        >>> linkwitz_riley(1000, 4, 48_000).shape
        torch.Size([2, 6])
    """
    check_even(ORDER.check(order, None))
    once = butterworth(cutoff, order // 2, fs, BTYPE.check(btype, None))
    return torch.cat([once, once], dim=-2)


def crossover(cutoffs: Cutoff, order: int, fs: float) -> Tensor:
    """Design a crossover: bands that add up to an all-pass, flat in magnitude.

    Each cutoff splits what lies above the one before by Linkwitz-Riley filters; the bands below it pass through the
    all-pass that its two halves add up to, so that all bands stay in phase (S. P. Lipshitz, J. Vanderkooy, J. Audio
    Eng. Soc. 34, 1986). In orders 2, 6, ... the high-pass halves are inverted.

    Args:
        cutoffs: Hz, ascending, in (0, fs/2): one less than there are bands. A tensor (..., n) is differentiable.
        order: of the Linkwitz-Riley filters, even, in [2, 100].
        fs: sample rate, Hz.

    Returns:
        float64, (..., bands, sections, 6), from the lowest band to the highest; bands with fewer sections are filled
        with 1 0 0 1 0 0.

    Examples:
        >>> crossover([200, 2000], 4, 48_000).shape
        torch.Size([3, 4, 6])
    """
    check_even(ORDER.check(order, None))
    edges: Any = CUTOFFS.check(cutoffs, sample_rate(fs))
    if isinstance(edges, Tensor):
        if is_readable(edges) and not bool((edges.diff(dim=-1) > 0).all() if edges.dim() else True):
            raise ArgumentError("cutoffs must ascend in their last dimension")
        edges = edges.unbind(-1) if edges.dim() else (edges,)
    below: list[list[Tensor]] = []  # the filters of each finished band
    above: list[Tensor] = []  # those of what lies above
    for edge in edges if isinstance(edges, tuple) else (edges,):
        low, high = linkwitz_riley(edge, order, fs), linkwitz_riley(edge, order, fs, "highpass")
        if order % 4:
            inverted = torch.cat([-high[..., :1, :3], high[..., :1, 3:]], dim=-1)
            high = torch.cat([inverted, high[..., 1:, :]], dim=-2)
        below = [[*band, _all_pass(low, order)] for band in below]
        below.append([*above, low])
        above = [*above, high]
    bands = [torch.cat(band, dim=-2) for band in [*below, above]]
    most = max(band.shape[-2] for band in bands)
    return torch.stack([_filled(band, most) for band in bands], dim=-3)


def check_even(order: int) -> None:
    """Raise for an odd order."""
    if order % 2:
        raise ArgumentError(f"order must be even for a Linkwitz-Riley filter, got {order}")


def _all_pass(low: Tensor, order: int) -> Tensor:
    """Return the all-pass that a low-pass and its high-pass add up to: the Butterworth poles, once."""
    a0, a1, a2 = low[..., : low.shape[-2] // 2, 3:].unbind(-1)
    rows = torch.stack([a2, a1, a0, a0, a1, a2], dim=-1)
    if order % 4 == 0:
        return rows
    # The first section is of first order: its numerator is a1 + 1/z.
    first = rows[..., :1, [1, 2, 0, 3, 4, 5]]
    return torch.cat([first, rows[..., 1:, :]], dim=-2)


def _filled(sos: Tensor, count: int) -> Tensor:
    passing = sos.new_tensor([1.0, 0.0, 0.0, 1.0, 0.0, 0.0]).expand(*sos.shape[:-2], count - sos.shape[-2], 6)
    return torch.cat([sos, passing], dim=-2)
