"""Derivatives of a finite impulse response in plain PyTorch: the definitions, themselves differentiable to any order.

Output and state after are the full convolution of x and taps plus the state before, cut at the block's end. So with
g = grad_y followed by the gradient of the state after,

    grad_x[t]   = sum over k of taps[k] g[t+k]
    grad_taps[k] = sum over t of x[t] g[t+k]
    gradient of the state before = g's beginning

The response is linear in the signal with its state, and in the taps: its tangent is the response to their tangents.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from torchfx._ops.differentiation import Gradient

__all__ = ["GRADIENTS", "backward", "by_state"]

Forward = Callable[[Tensor, Tensor, "Tensor | None"], tuple[Tensor, Tensor]]
Arguments = Sequence[Any]  # x, taps, state


def backward(forward: Forward, arguments: Arguments, grads: Sequence[Tensor | None]) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of signal, taps and state before, shaped like these.

    Args:
        forward: the response itself; differentiable as often as needed.
        arguments: signal (..., time), taps (..., n), state before or None.
        grads: gradients of the output (..., time) and of the state after (..., n - 1), each None for zeros.
    """
    x, taps, _ = arguments
    grad_y, grad_after = _with_zeros(arguments, grads)
    time, reach = x.shape[-1], taps.shape[-1] - 1
    g = torch.cat([grad_y.double(), grad_after], dim=-1)
    grad_x = forward(g.flip(-1), taps, None)[0].flip(-1)[..., :time]
    return grad_x.to(x.dtype).sum_to_size(x.shape), _by_taps(x, taps, g), g[..., :reach]


def by_state(grad_y: Tensor, grad_after: Tensor | None, grad_state: Tensor) -> None:
    """Write the gradient of the state before: it only adds to the first outputs, so its gradient is theirs."""
    reach = grad_state.shape[-1]
    kept = min(reach, grad_y.shape[-1])
    grad_state[..., :kept] = grad_y[..., :kept]
    grad_state[..., kept:] = 0 if grad_after is None else grad_after[..., : reach - kept]


def _by_taps(x: Tensor, taps: Tensor, g: Tensor) -> Tensor:
    """Return the gradient of the taps (..., n) by transforms of blocks; g (..., time + n - 1) is float64."""
    if not g.numel():  # some FFT libraries refuse no signals
        return torch.zeros_like(taps)
    time, count = x.shape[-1], taps.shape[-1]
    size = 1 << min(max(2048, 4 * count), g.shape[-1]).bit_length()
    step = size - count + 1
    silence = -time % step if time else step
    blocks = torch.nn.functional.pad(x.to(g.dtype), (0, silence)).unflatten(-1, (-1, step))
    windows = torch.nn.functional.pad(g, (0, silence)).unfold(-1, size, step)
    products = torch.fft.rfft(blocks, size).conj() * torch.fft.rfft(windows)
    spectrum = products.sum(-2)
    correlation: Tensor = torch.fft.irfft(spectrum.sum_to_size(*taps.shape[:-1], spectrum.shape[-1]), size)
    return correlation[..., :count]


def tangent(forward: Forward, arguments: Arguments, tangents: Sequence[Tensor | None]) -> tuple[Tensor, Tensor]:
    """Return the tangents of output and state after; it takes the arguments of `backward`."""
    x, taps, _ = arguments
    by_x, by_taps, by_state = tangents
    dy, after = forward(torch.zeros_like(x) if by_x is None else by_x, taps, by_state)
    if by_taps is not None:
        added, added_after = forward(x, by_taps, None)
        dy, after = dy + added, after + added_after
    return dy, after


def _with_zeros(arguments: Arguments, grads: Sequence[Tensor | None]) -> tuple[Tensor, Tensor]:
    x, taps, _ = arguments
    leading = torch.broadcast_shapes(x.shape[:-1], taps.shape[:-1])
    grad_y, grad_after = grads
    if grad_y is None:
        grad_y = x.new_zeros((*leading, x.shape[-1]))
    if grad_after is None:
        grad_after = x.new_zeros((*leading, taps.shape[-1] - 1), dtype=torch.float64)
    return grad_y, grad_after


def _first(
    operators: Mapping[str, Callable[..., Any]],
    arguments: Arguments,
    kept: Sequence[Tensor],
    grads: Sequence[Tensor | None],
    needed: Sequence[bool],
) -> Sequence[Tensor]:
    """Return gradients that won't be differentiated again."""
    x, taps, _ = arguments
    grad_y, grad_after = grads
    if grad_y is None:
        grad_y, _ = _with_zeros(arguments, grads)
    found: Sequence[Tensor] = operators["fir_backward"](grad_y, grad_after, x, taps, *needed)
    return found


GRADIENTS = {"fir_forward": Gradient(backward, tangent, first=_first)}
