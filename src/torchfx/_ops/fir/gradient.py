"""Gradients of a finite impulse response in plain PyTorch: the definition, itself differentiable to any order.

Output and state after are the full convolution of x and taps plus the state before, cut at the block's end. So with
g = grad_y followed by the gradient of the state after,

    grad_x[t]   = sum over k of taps[k] g[t+k]
    grad_taps[k] = sum over t of x[t] g[t+k]
    gradient of the state before = g's beginning
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["backward"]


Forward = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def backward(
    forward: Forward, grad_y: Tensor, grad_after: Tensor, x: Tensor, taps: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of signal, taps and state before.

    Args:
        forward: the response itself, (signal, taps) -> (signal, state); differentiable as often as needed.
        grad_y: gradient of the output, (..., time).
        grad_after: gradient of the state after, (..., taps - 1), float64.
        x: signal, (..., time).
        taps: float64, (n,).
    """
    time, reach = x.shape[-1], taps.numel() - 1
    g = torch.cat([grad_y.double(), grad_after], dim=-1)
    grad_x = forward(g.flip(-1), taps)[0].flip(-1)[..., :time]
    size = time + reach
    spectrum = torch.fft.rfft(x.double(), size).conj() * torch.fft.rfft(g, size)
    correlation = torch.fft.irfft(spectrum.reshape(-1, spectrum.shape[-1]).sum(0), size)
    return grad_x.to(x.dtype), correlation[: reach + 1], g[..., :reach]
