"""Response and cascade as the two operators they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from torchfx._ops.checks import broadcast

Operators = Mapping[str, Callable[..., Any]]


def lti_forward(
    operators: Operators,
    x: Tensor,
    taps: Tensor,
    sos: Tensor,
    taps_state: Tensor | None,
    state: Tensor | None,
    threshold: int | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Run one after the other, on any device that has float64."""
    leading = broadcast(x.shape[:-1], taps.shape[:-1], sos.shape[:-2])
    wide = x.double().expand(*leading, x.shape[-1])
    y, taps_after = operators["fir_forward"](wide, taps, taps_state)
    y, after = operators["sos_forward"](y, sos, state, threshold)
    return y.to(x.dtype), taps_after, after
