"""Forwards and backwards in terms of the cascade; the extension and the settled states serve other filters too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

__all__ = ["both_ways", "settled_sections", "settled_state", "sos_zero_phase"]

Operators = Mapping[str, Callable[..., Any]]

BEYOND: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "odd": lambda edge, inner: 2 * edge - inner,
    "even": lambda edge, inner: inner,
    "constant": lambda edge, inner: edge.expand_as(inner),
}
"""The signal beyond an edge, from the edge's sample and the mirrored samples after it."""


def sos_zero_phase(operators: Operators, x: Tensor, sos: Tensor, edge: int, extension: str) -> Tensor:
    """Run the cascade twice, each time from the state settled on the first sample."""
    start = settled_sections(sos)
    start = start.reshape(len(start), *[1] * (x.dim() - sos.dim() + 1), *start.shape[1:])  # the signal's dimensions
    leading = torch.broadcast_shapes(x.shape[:-1], sos.shape[:-2])

    def run(each: Tensor, first: Tensor) -> Tensor:
        state = (start * first).expand(sos.shape[-2], *leading, 2)
        found: Tensor = operators["sos_forward"](each, sos, state, None)[0]
        return found

    return both_ways(x, edge, extension, run)


def both_ways(x: Tensor, edge: int, extension: str, run: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """Run a filter over the extended signal and over its reversed output, in float64.

    Args:
        x: (..., time).
        edge: by how many samples, fewer than the signal has, it continues beyond each end.
        extension: how, a key of `BEYOND`.
        run: filters (..., time) from the state it has settled in on the first sample, (..., 1).
    """
    wide = x.double()
    if edge:
        beyond = BEYOND[extension]
        left = beyond(wide[..., :1], wide[..., 1 : edge + 1].flip(-1))
        right = beyond(wide[..., -1:], wide[..., -edge - 1 : -1].flip(-1))
        wide = torch.cat([left, wide, right], dim=-1)
    for _ in range(2):
        wide = run(wide, wide[..., :1]).flip(-1)
    return wide[..., edge : wide.shape[-1] - edge].to(x.dtype)


def settled_state(b: Tensor, a: Tensor) -> Tensor:
    """Return the state (..., n - 1) in which a filter has settled on a constant input of 1, for a0 = 1.

    State k is the past's contribution to output k from now on: it holds b[j] - a[j] y for all j > k, y being the
    output.
    """
    coming = b - a * (b.sum(-1, keepdim=True) / a.sum(-1, keepdim=True))
    return coming[..., 1:].flip(-1).cumsum(-1).flip(-1)


def settled_sections(sos: Tensor) -> Tensor:
    """Return the states (sections, ..., 2) in which a cascade (..., sections, 6) has settled on an input of 1."""
    states, level = [], sos.new_ones(sos.shape[:-2])
    for row in sos.unbind(-2):
        b, a = row[..., :3], row[..., 3:]
        states.append(settled_state(b / a[..., :1], a / a[..., :1]) * level[..., None])
        level = level * b.sum(-1) / a.sum(-1)
    return torch.stack(states)
