"""Derivatives of the ballistics in plain PyTorch: which coefficient a sample takes is held constant.

Then the recurrence is linear, and w[t], the gradient at y[t] of all that follows, runs backwards:

    w[t]       = grad_y[t] + (1 - c[t+1]) w[t+1]
    grad_x[t]  = c[t] w[t]
    grad_c[t]  = (x[t] - y[t-1]) w[t]

and the state's gradient is w[-1]. A tangent follows dy[t] = (1 - c[t]) dy[t-1] + c[t] dx[t] + dc[t] (x[t] - y[t-1]).
Both are all-pole filters of order 1 whose coefficient changes at every sample.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from torchfx._ops.differentiation import BY_DISPATCHER, Gradient
from torchfx._ops.observers import gradients_are_batched

__all__ = ["GRADIENTS"]

Forward = Callable[..., tuple[Tensor, Tensor]]
Arguments = Sequence[Any]  # x, coefficients, state


def backward(forward: Forward, arguments: Arguments, grads: Sequence[Tensor | None]) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of signal, coefficients and state before, shaped like these."""
    x, coefficients, _ = arguments
    rising, c, off = _linearised(forward, arguments)
    grad_y, grad_after = grads
    time = x.shape[-1]
    g = torch.zeros_like(off) if grad_y is None else grad_y.double()
    g = pad(g, (1, 0))  # a sample in front, where the state is
    if grad_after is not None:
        g = g + pad(grad_after[..., None], (time, 0))
    w = _allpole()(g.flip(-1), pad((c - 1).flip(-1), (1, 0))[..., None], None)[0].flip(-1)
    by_c = w[..., 1:] * off
    by_coefficients = torch.stack([by_c.where(rising, 0.0).sum(-1), by_c.where(~rising, 0.0).sum(-1)], dim=-1)
    grad_x = (c * w[..., 1:]).to(x.dtype).sum_to_size(x.shape)
    return grad_x, by_coefficients.sum_to_size(coefficients.shape), w[..., 0]


def tangent(forward: Forward, arguments: Arguments, tangents: Sequence[Tensor | None]) -> tuple[Tensor, Tensor]:
    """Return the tangents of output and state after."""
    x = arguments[0]
    rising, c, off = _linearised(forward, arguments)
    by_x, by_coefficients, by_state = tangents
    change = torch.zeros_like(off) if by_x is None else c * by_x.double()
    if by_coefficients is not None:
        rise, fall = by_coefficients[..., None].unbind(-2)
        change = change + torch.where(rising, rise, fall) * off
    dy, after = _allpole()(change, (c - 1)[..., None], None if by_state is None else by_state[..., None])
    return dy.to(x.dtype), after[..., 0]


def _linearised(forward: Forward, arguments: Arguments) -> tuple[Tensor, Tensor, Tensor]:
    """Return where the signal lies above the output before, the coefficient of each sample, and how far it lies off."""
    x, coefficients, state = arguments
    leading = torch.broadcast_shapes(x.shape[:-1], coefficients.shape[:-1])
    x = x.double().expand(*leading, x.shape[-1])
    y, _ = forward(x, coefficients, state)
    first = torch.zeros_like(coefficients[..., 0]).expand(leading) if state is None else state
    off = x - torch.cat([first[..., None], y], dim=-1)[..., :-1]
    rising = off > 0
    rise, fall = coefficients[..., None].unbind(-2)
    return rising, torch.where(rising, rise, fall), off


def _allpole() -> Forward:
    from torchfx._ops import operators

    found: Forward = (BY_DISPATCHER if gradients_are_batched() else operators)["allpole_forward"]
    return found


GRADIENTS = {"ballistics_forward": Gradient(backward, tangent)}
