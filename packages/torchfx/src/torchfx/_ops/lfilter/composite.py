"""Transfer functions in terms of the response b and the all-pole filter 1 / a."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from torchfx._ops.zero_phase.composite import both_ways, settled_state

Operators = Mapping[str, Callable[..., Any]]


def lfilter_forward(
    operators: Operators, x: Tensor, b: Tensor, a: Tensor, state: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Run the response b, to whose output the state adds, and then 1 / a.

    The state is that of the transposed direct form, what past samples still add: those of the input by way of b, those
    of the output by way of a.
    """
    leading = torch.broadcast_shapes(x.shape[:-1], b.shape[:-1], a.shape[:-1])
    wide = x.double().expand(*leading, x.shape[-1])
    between, after = operators["fir_forward"](wide, b, state)
    y = operators["allpole_forward"](between, a[..., None, 1:], None)[0]
    fed_back = operators["fir_forward"](y[..., -(b.shape[-1] - 1) :], a, None)[1]
    return y.to(x.dtype), after - fed_back


def lfilter_zero_phase(operators: Operators, x: Tensor, b: Tensor, a: Tensor, edge: int, extension: str) -> Tensor:
    """Run the filter twice, each time from the state settled on the first sample."""
    start = settled_state(b, a)
    leading = torch.broadcast_shapes(x.shape[:-1], b.shape[:-1], a.shape[:-1])

    def run(each: Tensor, first: Tensor) -> Tensor:
        found: Tensor = lfilter_forward(operators, each, b, a, (start * first).expand(*leading, start.shape[-1]))[0]
        return found

    return both_ways(x, edge, extension, run)
