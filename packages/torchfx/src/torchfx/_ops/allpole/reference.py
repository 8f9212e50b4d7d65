"""The all-pole filter in plain PyTorch: the recurrence as one would write it on paper."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torchfx._ops.allpole import gradient
from torchfx._ops.checks import check_finite
from torchfx._ops.differentiation import write_gradients


def allpole_forward(x: Tensor, a: Tensor, past: Tensor | None, y: Tensor, after: Tensor) -> None:
    """Run the filter on any device that has float64."""
    if a.shape[-2] == 1:
        check_finite("a", a)
    history = torch.zeros_like(after) if past is None else past
    rows = a.double().unbind(-2)
    outputs = []
    for t, sample in enumerate(x.double().expand(y.shape).unbind(-1)):
        found = sample - (rows[t if len(rows) > 1 else 0] * history).sum(-1)
        history = torch.cat([found[..., None], history[..., :-1]], dim=-1)
        outputs.append(found)
    if outputs:
        y.copy_(torch.stack(outputs, dim=-1))
    after.copy_(history)


def allpole_backward(
    grad_y: Tensor, grad_after: Tensor | None, y: Tensor, x: Tensor, a: Tensor, past: Tensor | None, *rest: Any
) -> None:
    """Run the definition of the gradients."""
    write_gradients("allpole_forward", gradient.backward, (x, a, past), (grad_y, grad_after), *rest)
