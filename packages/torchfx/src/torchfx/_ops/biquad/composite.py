"""The biquad in terms of the cascade."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

Operators = Mapping[str, Callable[..., Any]]


def biquad_forward(
    operators: Operators, x: Tensor, b: Tensor, a: Tensor, state: Tensor | None, threshold: int | None
) -> tuple[Tensor, Tensor]:
    """Run b and a as one row of second-order sections."""
    b, a = torch.broadcast_tensors(b, a)
    sos = torch.cat([b, a], dim=-1).unsqueeze(-2)
    y, after = operators["sos_forward"](x, sos, None if state is None else state[None], threshold)
    return y, after[0]
