"""Derivatives of a cascade in plain PyTorch: the definitions, themselves differentiable to any order.

With w[t] the gradient at the sum that makes y[t], a section's adjoint runs backwards in time:

    w[t]       = grad_y[t] - a1 w[t+1] - a2 w[t+2],    w[T], w[T+1] = gradient of the state after
    grad_x[t]  = b0 w[t] + b1 w[t+1] + b2 w[t+2]
    grad_bj    =  sum of x[t] w[t+j],   grad_aj = - sum of y[t] w[t+j]
    gradient of the state before = w[0], w[1]

so the recursion is the section's own all-pole part on the reversed signal, and is run as such.

A tangent goes forwards. The section itself filters the input's and the state's; a change of the coefficients adds

    v0[t] = db0 x[t],  v1[t] = db1 x[t] - da1 y[t],  v2[t] = db2 x[t] - da2 y[t]

to the three sums of its recursion (y, s1, s2), which is v0[t] + v1[t-1] + v2[t-2] through its all-pole part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from torchfx._ops import native
from torchfx._ops.differentiation import Gradient

__all__ = ["GRADIENTS", "backward"]

Forward = Callable[[Tensor, Tensor, "Tensor | None", "int | None"], tuple[Tensor, Tensor]]
Arguments = Sequence[Any]  # x, sos, state, threshold


def backward(forward: Forward, arguments: Arguments, grads: Sequence[Tensor | None]) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of signal, sections and state before, shaped like these.

    Args:
        forward: the cascade itself; differentiable as often as needed.
        arguments: signal (..., time), sections (..., sections, 6), state before or None, threshold.
        grads: gradients of the output (..., time) and of the state after (sections, ..., 2), each None for zeros.
    """
    x, sos, state, threshold = arguments
    rows = _normalised(sos)
    count = rows.shape[-2]
    leading = torch.broadcast_shapes(x.shape[:-1], sos.shape[:-2])
    grad_y, grad_after = grads
    after = x.new_zeros((count, *leading, 2), dtype=torch.float64) if grad_after is None else grad_after
    before = torch.zeros_like(after) if state is None else state
    signals = _signals(forward, x.expand(*leading, x.shape[-1]).double(), rows, before, threshold)
    grad = torch.zeros_like(signals[0]) if grad_y is None else grad_y.double()
    grad_rows, grad_before = [], []
    for k in reversed(range(count)):
        w = _adjoint(forward, grad, rows[..., k, :], after[k], threshold)
        grad_rows.append(_row(w, signals[k], signals[k + 1]))
        grad_before.append(w[..., :2])
        b0, b1, b2 = (rows[..., k, j, None] for j in range(3))
        grad = b0 * w[..., :-2] + b1 * w[..., 1:-1] + b2 * w[..., 2:]
    by_row = torch.stack(grad_rows[::-1], dim=-2).sum_to_size(sos.shape)
    by_a0 = -(by_row * rows).sum(-1, keepdim=True)
    grad_sos = torch.cat([by_row[..., :3], by_a0, by_row[..., 4:]], dim=-1) / sos[..., 3:4]
    return grad.to(x.dtype).sum_to_size(x.shape), grad_sos, torch.stack(grad_before[::-1])


def tangent(forward: Forward, arguments: Arguments, tangents: Sequence[Tensor | None]) -> tuple[Tensor, Tensor]:
    """Return the tangents of output and state after; it takes the arguments of `backward`."""
    x, sos, state, threshold = arguments
    by_x, by_sos, by_state = tangents
    rows = _normalised(sos)
    count = rows.shape[-2]
    leading = torch.broadcast_shapes(x.shape[:-1], sos.shape[:-2])
    before = x.new_zeros((count, *leading, 2), dtype=torch.float64) if state is None else state
    signals = _signals(forward, x.expand(*leading, x.shape[-1]).double(), rows, before, threshold)
    dx = torch.zeros_like(signals[0]) if by_x is None else by_x.expand(*leading, x.shape[-1]).double()
    dstate = torch.zeros_like(before) if by_state is None else by_state
    drows = torch.zeros_like(rows) if by_sos is None else (by_sos - rows * by_sos[..., 3:4]) / sos[..., 3:4]
    states = []
    for k in range(count):
        dx, after = forward(dx, rows[..., k : k + 1, :], dstate[k : k + 1], threshold)
        added, added_state = _coefficient_tangent(
            forward, signals[k], signals[k + 1], rows[..., k, :], drows[..., k, :], threshold
        )
        dx = dx + added
        states.append(after[0] + added_state)
    return dx.to(x.dtype), torch.stack(states)


def _normalised(sos: Tensor) -> Tensor:
    return sos / sos[..., 3:4]


def _signals(forward: Forward, x: Tensor, rows: Tensor, before: Tensor, threshold: int | None) -> list[Tensor]:
    """Return the input and what each section makes of it."""
    signals = [x]
    for k in range(rows.shape[-2]):
        signals.append(forward(signals[-1], rows[..., k : k + 1, :], before[k : k + 1], threshold)[0])
    return signals


def _adjoint(forward: Forward, grad: Tensor, row: Tensor, after: Tensor, threshold: int | None) -> Tensor:
    """Return w[0] ... w[T+1], (..., time + 2)."""
    a1, a2 = row[..., 4], row[..., 5]
    start = torch.stack([-a1 * after[..., 0] - a2 * after[..., 1], -a2 * after[..., 0]], dim=-1)
    w = forward(grad.flip(-1), _all_pole(row), start[None], threshold)[0].flip(-1)
    return torch.cat([w, after], dim=-1)


def _all_pole(row: Tensor) -> Tensor:
    """Return the section 1 / (1 + a1/z + a2/z^2), (..., 1, 6)."""
    zero, one = torch.zeros_like(row[..., 0]), torch.ones_like(row[..., 0])
    return torch.stack([one, zero, zero, one, row[..., 4], row[..., 5]], dim=-1).unsqueeze(-2)


def _row(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Return the gradient of b0 b1 b2 a0 a1 a2 where a0 = 1 does not move, (..., 6)."""
    time = x.shape[-1]
    by_b = [(x * w[..., j : j + time]).sum(-1) for j in range(3)]
    by_a = [-(y * w[..., j : j + time]).sum(-1) for j in (1, 2)]
    return torch.stack([*by_b, torch.zeros_like(by_b[0]), *by_a], dim=-1)


def _coefficient_tangent(
    forward: Forward, x: Tensor, y: Tensor, row: Tensor, drow: Tensor, threshold: int | None
) -> tuple[Tensor, Tensor]:
    """Return what a change of one section's coefficients adds to its output and to its state after, (..., 2)."""
    db0, db1, db2, _, da1, da2 = (drow[..., j, None] for j in range(6))
    v1, v2 = db1 * x - da1 * y, db2 * x - da2 * y
    pad = torch.nn.functional.pad
    v = db0 * x + pad(v1, (1, 0))[..., :-1] + pad(v2, (2, 0))[..., : x.shape[-1]]
    added, state = forward(v, _all_pole(row), None, threshold)
    last, before_last = v2[..., -1], pad(v2, (1, 0))[..., -2]
    return added, state[0] + torch.stack([v1[..., -1] + before_last, last], dim=-1)


def _keeps(arguments: Arguments) -> bool:
    """Return whether the backward pass of a call is going to use states that the forward pass keeps."""
    x, sos, _, _ = arguments
    return bool(sos.requires_grad) and (x.is_cuda or (x.is_cpu and native.library is not None))


def _first(
    operators: Mapping[str, Callable[..., Any]],
    arguments: Arguments,
    kept: Sequence[Tensor],
    grads: Sequence[Tensor | None],
    needed: Sequence[bool],
) -> Sequence[Tensor]:
    """Return gradients that won't be differentiated again."""
    x, sos, state, threshold = arguments
    grad_y, grad_after = grads
    if grad_y is None:
        leading = torch.broadcast_shapes(x.shape[:-1], sos.shape[:-2])
        grad_y = x.new_zeros((*leading, x.shape[-1]))
    checkpoints = kept[0] if kept else None
    found: Sequence[Tensor] = operators["sos_backward"](
        grad_y, grad_after, x, sos, state, checkpoints, threshold, *needed
    )
    return found


GRADIENTS = {"sos_forward": Gradient(backward, tangent, first=_first, keeps=_keeps, recording="sos_forward_recording")}
