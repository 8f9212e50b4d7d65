"""Gradients of a cascade in plain PyTorch: the definition, itself differentiable to any order.

With w[t] the gradient at the sum that makes y[t], a section's adjoint runs backwards in time:

    w[t]       = grad_y[t] - a1 w[t+1] - a2 w[t+2],    w[T], w[T+1] = gradient of the state after
    grad_x[t]  = b0 w[t] + b1 w[t+1] + b2 w[t+2]
    grad_bj    =  sum of x[t] w[t+j],   grad_aj = - sum of y[t] w[t+j]
    gradient of the state before = w[0], w[1]

so the recursion is the section's own all-pole part on the reversed signal, and is run as such.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["backward"]


Forward = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


def backward(
    forward: Forward, grad_y: Tensor, grad_after: Tensor, x: Tensor, sos: Tensor, state: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of signal, sections and state before, shaped like these.

    Args:
        forward: the cascade itself, (signal, sections, state) -> (signal, state); differentiable as often as needed.
        grad_y: gradient of the output, (..., time).
        grad_after: gradient of the state after, (sections, ..., 2), float64.
        x: signal, (..., time).
        sos: float64, (sections, 6).
        state: state before, (sections, ..., 2), or None for rest.
    """
    shape = (sos.shape[0], -1, 2)
    rows = sos / sos[:, 3:4]
    after = grad_after.reshape(shape)
    before = torch.zeros_like(after) if state is None else state.reshape(shape)
    signals = _signals(forward, x.reshape(-1, x.shape[-1]).double(), rows, before)
    grad = grad_y.reshape(-1, x.shape[-1]).double()
    grad_rows, grad_before = [], []
    for k in reversed(range(sos.shape[0])):
        w = _adjoint(forward, grad, rows[k], after[k])
        grad_rows.append(_row(w, signals[k], signals[k + 1]))
        grad_before.append(w[:, :2])
        grad = rows[k, 0] * w[:, :-2] + rows[k, 1] * w[:, 1:-1] + rows[k, 2] * w[:, 2:]
    by_row = torch.stack(grad_rows[::-1])
    by_a0 = -(by_row * rows).sum(1, keepdim=True)
    grad_sos = torch.cat([by_row[:, :3], by_a0, by_row[:, 4:]], dim=1) / sos[:, 3:4]
    return grad.reshape(x.shape).to(x.dtype), grad_sos, torch.stack(grad_before[::-1]).reshape(grad_after.shape)


def _signals(forward: Forward, x: Tensor, rows: Tensor, before: Tensor) -> list[Tensor]:
    """Return the input and what each section makes of it."""
    signals = [x]
    for k in range(rows.shape[0]):
        signals.append(forward(signals[-1], rows[k : k + 1], before[k : k + 1])[0])
    return signals


def _adjoint(forward: Forward, grad: Tensor, row: Tensor, after: Tensor) -> Tensor:
    """Return w[0] ... w[T+1], (channels, time + 2)."""
    a1, a2 = row[4], row[5]
    zero, one = torch.zeros_like(a1), torch.ones_like(a1)
    all_pole = torch.stack([one, zero, zero, one, a1, a2])
    start = torch.stack([-a1 * after[:, 0] - a2 * after[:, 1], -a2 * after[:, 0]], dim=-1)
    return torch.cat([forward(grad.flip(-1), all_pole[None], start[None])[0].flip(-1), after], dim=-1)


def _row(w: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Return the gradient of b0 b1 b2 a0 a1 a2 where a0 = 1 does not move."""
    time = x.shape[-1]
    by_b = [(x * w[:, j : j + time]).sum() for j in range(3)]
    by_a = [-(y * w[:, j : j + time]).sum() for j in (1, 2)]
    return torch.stack([*by_b, torch.zeros_like(by_b[0]), *by_a])
