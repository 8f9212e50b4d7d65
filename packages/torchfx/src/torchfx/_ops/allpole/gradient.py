"""Derivatives of the all-pole filter in plain PyTorch: the definitions, themselves differentiable to any order.

The gradient w[t] at the sum that makes y[t] is the same recursion, backwards in time:

    w[t]         = grad_y[t] - a[t+1, 1] w[t+1] - ... - a[t+n, n] w[t+n]
    grad_x[t]    = w[t]
    grad_a[t, k] = -w[t] y[t-k]

The past outputs are the first samples of a longer signal whose coefficients are zero until the block begins. A tangent
goes forwards: it is the filter's answer to dx[t] - sum of da[t, k] y[t-k].

(C.-Y. Yu and G. Fazekas, Differentiable Time-Varying Linear Prediction in the Context of End-to-End
Analysis-by-Synthesis, 2024, derive the same.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from torchfx._ops.differentiation import Gradient

__all__ = ["GRADIENTS", "backward"]

Forward = Callable[[Tensor, Tensor, "Tensor | None"], tuple[Tensor, Tensor]]
Arguments = Sequence[Any]  # x, a, past


def backward(forward: Forward, arguments: Arguments, grads: Sequence[Tensor | None]) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of signal, coefficients and past outputs, shaped like these.

    Args:
        forward: the filter itself; differentiable as often as needed.
        arguments: signal (..., time), coefficients (..., 1 or time, n), past outputs (..., n) or None.
        grads: gradients of output and past outputs after, each None for zeros.
    """
    x, a, _ = arguments
    order, time = a.shape[-1], x.shape[-1]
    outputs = _outputs(forward, arguments)
    grad_y, grad_after = grads
    g = torch.zeros_like(outputs) if grad_y is None else pad(grad_y.double(), (order, 0))
    if grad_after is not None:
        g = g + pad(grad_after.flip(-1), (time, 0))
    rows = pad(_per_sample(a, time), (0, 0, order, order))
    skewed = torch.stack([rows[..., k + 1 : k + 1 + time + order, k] for k in range(order)], dim=-1)
    w = forward(g.flip(-1), skewed.flip(-2), None)[0].flip(-1)
    grad_a = -w[..., order:, None] * _lagged(outputs, order)
    grad_x = w[..., order:].to(x.dtype).sum_to_size(x.shape)
    return grad_x, grad_a.sum_to_size(a.shape).to(a.dtype), w[..., :order].flip(-1)


def tangent(forward: Forward, arguments: Arguments, tangents: Sequence[Tensor | None]) -> tuple[Tensor, Tensor]:
    """Return the tangents of output and past outputs after; it takes the arguments of `backward`."""
    x, a, _ = arguments
    by_x, by_a, by_past = tangents
    dx = torch.zeros_like(x, dtype=torch.float64) if by_x is None else by_x.double()
    if by_a is not None:
        dx = dx - (by_a.double() * _lagged(_outputs(forward, arguments), a.shape[-1])).sum(-1)
    dy, after = forward(dx, a, by_past)
    return dy.to(x.dtype), after


def _per_sample(a: Tensor, time: int) -> Tensor:
    return a.double().expand(*a.shape[:-2], time, a.shape[-1])


def _outputs(forward: Forward, arguments: Arguments) -> Tensor:
    """Return the outputs in float64, those before the first in front: (..., n + time)."""
    x, a, past = arguments
    y, _ = forward(x.double(), a, past)
    return pad(y, (a.shape[-1], 0)) if past is None else torch.cat([past.flip(-1), y], dim=-1)


def _lagged(outputs: Tensor, order: int) -> Tensor:
    """Return y[t-1] ... y[t-n] for each t, (..., time, n)."""
    time = outputs.shape[-1] - order
    return torch.stack([outputs[..., order - k : order - k + time] for k in range(1, order + 1)], dim=-1)


def _first(
    operators: Mapping[str, Callable[..., Any]],
    arguments: Arguments,
    kept: Sequence[Tensor],
    grads: Sequence[Tensor | None],
    needed: Sequence[bool],
) -> Sequence[Tensor]:
    """Return gradients that won't be differentiated again."""
    x, a, past = arguments
    y, _ = kept
    grad_y, grad_after = grads
    grad_y = torch.zeros_like(y) if grad_y is None else grad_y
    found: Sequence[Tensor] = operators["allpole_backward"](grad_y, grad_after, y, x, a, past, *needed)
    return found


GRADIENTS = {"allpole_forward": Gradient(backward, tangent, first=_first, keeps_results=True)}
