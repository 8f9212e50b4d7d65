"""Derivatives of noise, which is linear in signal and gain, and of magnitudes.

The gradient of a magnitude |x| is x / |x|, and 0 for silence. That of rounding is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from torchfx._ops.differentiation import Gradient

__all__ = ["GRADIENTS"]

Forward = Callable[..., Tensor]


def noise_backward(forward: Forward, arguments: Sequence[Any], grads: Sequence[Tensor | None]) -> Sequence[Any]:
    """Return the gradients of signal and gain."""
    x, gain, place, *how, rounded = arguments
    (grad,) = grads
    assert grad is not None
    if rounded:
        return torch.zeros_like(x), torch.zeros_like(gain), None
    grad_gain = None
    if gain.requires_grad:
        grad = grad.double()
        noise = forward(torch.zeros_like(grad), torch.ones_like(gain), place, *how, False)
        grad_gain = (grad * noise).sum(-1).sum_to_size(gain.shape)
    return grad.sum_to_size(x.shape).to(x.dtype), grad_gain, None


def noise_tangent(forward: Forward, arguments: Sequence[Any], tangents: Sequence[Tensor | None]) -> tuple[Tensor]:
    """Return the tangent of the output."""
    x, gain, place, *how, rounded = arguments
    by_x, by_gain, _ = tangents
    if rounded:
        return (torch.zeros_like(forward(*arguments)),)
    by_x = torch.zeros_like(x) if by_x is None else by_x
    return (forward(by_x, torch.zeros_like(gain) if by_gain is None else by_gain, place, *how, False),)


def magnitude_backward(forward: Forward, arguments: Sequence[Any], grads: Sequence[Tensor | None]) -> Sequence[Any]:
    """Return the gradient of the signal."""
    (x,), (grad,) = arguments, grads
    assert grad is not None
    return ((_direction(forward, x) * grad[..., None]).to(x.dtype),)


def magnitude_tangent(forward: Forward, arguments: Sequence[Any], tangents: Sequence[Tensor | None]) -> tuple[Tensor]:
    """Return the tangent of the magnitudes."""
    (x,), (tangent,) = arguments, tangents
    assert tangent is not None
    return ((_direction(forward, x) * tangent).sum(-1),)


def _direction(forward: Forward, x: Tensor) -> Tensor:
    level = forward(x)[..., None]
    return x.double() / torch.where(level > 0, level, 1.0)


GRADIENTS = {
    "noise_forward": Gradient(noise_backward, noise_tangent),
    "magnitude": Gradient(magnitude_backward, magnitude_tangent),
}
