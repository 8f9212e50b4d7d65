"""The state-space operators in plain PyTorch: the recurrences as one would write them on paper."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torchfx._ops.checks import check_finite
from torchfx._ops.differentiation import write_gradients
from torchfx._ops.state_space import gradient

NEWTON_STEPS = 50


def state_space_forward(x: Tensor, system: Tensor, state: Tensor | None, y: Tensor, after: Tensor) -> None:
    """Run the system on any device that has float64."""
    _run(x, system, state, lambda matrix, s, sample: sample, y, after)


def saturated_forward(
    x: Tensor, system: Tensor, feedback: Tensor, drive: Tensor, state: Tensor | None, y: Tensor, after: Tensor
) -> None:
    """Run the system with its saturating amplifier."""

    def driven(matrix: Tensor, s: Tensor, sample: Tensor) -> Tensor:
        z = sample - feedback * (matrix[..., -1, :-1] * s).sum(-1)
        c = feedback * matrix[..., -1, -1]
        safe = torch.where(drive == 0, 1.0, drive)
        return torch.where(drive == 0, z / (1 + c), torch.tanh(solved(drive * z, c)) / safe)

    _run(x, system, state, driven, y, after)


def state_space_backward(
    grad_y: Tensor, grad_after: Tensor | None, x: Tensor, system: Tensor, state: Tensor | None, *rest: Any
) -> None:
    """Run the definition of the gradients."""
    write_gradients("state_space_forward", gradient.backward, (x, system, state), (grad_y, grad_after), *rest)


def solved(b: Tensor, c: Tensor) -> Tensor:
    """Return the solution of w + c tanh(w) = b for c >= 0, by Newton's method from a start before it."""
    w = b / (1 + c)
    for _ in range(NEWTON_STEPS):
        h = torch.tanh(w)
        step = (b - w - c * h) / (1 + c * (1 - h * h))
        w = w + step
        if not bool((step.abs() > 1e-15 * w.abs()).any()):
            break
    return w


def _run(
    x: Tensor,
    system: Tensor,
    state: Tensor | None,
    driven: Callable[[Tensor, Tensor, Tensor], Tensor],
    y: Tensor,
    after: Tensor,
) -> None:
    if system.shape[-3] == 1:
        check_finite("system", system)
    s = torch.zeros_like(after) if state is None else state
    matrices, outputs = system.unbind(-3), []
    hold = x.shape[-1] // max(1, len(matrices))
    for t, sample in enumerate(x.double().expand(y.shape).unbind(-1)):
        matrix = matrices[t // hold]
        both = torch.cat([s, driven(matrix, s, sample)[..., None]], dim=-1)
        found = (matrix @ both[..., None])[..., 0]
        s = found[..., :-1]
        outputs.append(found[..., -1])
    if outputs:
        y.copy_(torch.stack(outputs, dim=-1))
    after.copy_(s)
