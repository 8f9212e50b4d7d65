"""Derivatives of resampling.

The sum over inputs n of h[m down + origin - n up] x[n], with h the phases put back in order, has the transposed

    grad_x[n] = sum over m of h[m down + origin - n up] g[m]

which is resampling again: up and down change places, and h is reversed, so that with N = up n taps in all its origin is
N - 1 - origin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from torchfx._ops.differentiation import Gradient
from torchfx._ops.resample.reference import windows

__all__ = ["GRADIENTS"]

Forward = Callable[..., Tensor]
Arguments = Sequence[Any]  # x, taps, down, origin, length


def backward(forward: Forward, arguments: Arguments, grads: Sequence[Tensor | None]) -> tuple[Tensor, Tensor | None]:
    """Return the gradients of signal and taps; the latter where they are learned."""
    x, taps, down, origin, length = arguments
    (grad_y,) = grads
    assert grad_y is not None
    up, n = taps.shape
    response = taps.T.reshape(-1).flip(0)
    phases = torch.nn.functional.pad(response, (0, -response.numel() % down)).reshape(-1, down).T
    grad_x = forward(grad_y, phases.contiguous(), up, up * n - 1 - origin, x.shape[-1])
    if not taps.requires_grad:
        return grad_x, None
    grad_taps = torch.zeros_like(taps)
    for first, phase, window in windows(x, taps.shape, down, origin, length):
        g = grad_y[..., first : first + len(phase)].double()
        grad_taps = grad_taps.index_add(0, phase, (g[..., None] * window).reshape(-1, len(phase), n).sum(0))
    return grad_x, grad_taps


def tangent(forward: Forward, arguments: Arguments, tangents: Sequence[Tensor | None]) -> tuple[Tensor]:
    """Return the tangent of the output."""
    x, taps, *rest = arguments
    by_x, by_taps = tangents
    parts = [forward(by_x, taps, *rest)] if by_x is not None else []
    if by_taps is not None:
        parts.append(forward(x, by_taps, *rest))
    return (parts[0] if len(parts) == 1 else parts[0] + parts[1],)


GRADIENTS = {"resample_forward": Gradient(backward, tangent)}
