"""The operators themselves: forward passes, steps of training, and coefficients for each row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchfx import _ops

__all__ = ["forward", "forward_and_backward", "forward_into", "forward_per_row"]

Samples = npt.NDArray[np.float32]


def forward(job: dict[str, Any], x: Samples) -> Callable[[], Tensor]:
    """Return the operator's call where nothing requires a gradient."""
    signal, (operator, coefficients) = torch.from_numpy(x), _operator(job)
    return lambda: operator(signal, coefficients)[0]


def forward_into(job: dict[str, Any], x: Samples) -> Callable[[], Tensor]:
    """Return a call that writes into the same output each time."""
    signal, (operator, coefficients) = torch.from_numpy(x), _operator(job)
    results = tuple(torch.zeros_like(result) for result in operator(signal, coefficients))
    return lambda: operator(signal, coefficients, out=results)[0]


def forward_per_row(job: dict[str, Any], x: Samples) -> Callable[[], Tensor]:
    """Return the operator's call with separate coefficients for each row, and the result of shared ones.

    Row r is scaled by 2 ** (r % 8) in its coefficients and by the reciprocal in its samples. Both are exact.
    """
    operator, shared = _operator(job)
    scale = 2.0 ** (torch.arange(len(x)) % 8).double()
    coefficients = shared.repeat(len(x), *(1 for _ in shared.shape))
    if job["sos"] is not None:
        coefficients[:, 0, :3] *= scale[:, None]
    else:
        coefficients *= scale[:, None]
    signal = torch.from_numpy(x) / scale[:, None].float()
    return lambda: operator(signal, coefficients)[0]


def forward_and_backward(job: dict[str, Any], x: Samples) -> Callable[[], Tensor]:
    """Return the forward pass with the gradients of signal and coefficients."""
    signal, (operator, coefficients) = torch.from_numpy(x).clone(), _operator(job)
    grad_y = torch.from_numpy(np.ascontiguousarray(x[..., ::-1]))
    leaves = (signal.requires_grad_(), coefficients.requires_grad_())

    def run() -> Tensor:
        y: Tensor = operator(*leaves)[0]
        y.backward(grad_y)
        for leaf in leaves:
            leaf.grad = None
        return y.detach()

    return run


def _operator(job: dict[str, Any]) -> tuple[Callable[..., Any], Tensor]:
    if job["sos"] is not None:
        return _ops.parallel_iir_forward, torch.tensor(job["sos"], dtype=torch.float64)
    return _ops.fir_forward, torch.tensor(job["taps"], dtype=torch.float64)
