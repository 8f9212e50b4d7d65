"""Forward passes without and with their backward pass, as one step of training runs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchfx import _ops

__all__ = ["forward", "forward_and_backward"]

Samples = npt.NDArray[np.float32]


def forward(job: dict[str, Any], x: Samples) -> Callable[[], Tensor]:
    """Return the operator's call where nothing requires a gradient."""
    signal, (operator, coefficients) = torch.from_numpy(x), _operator(job)
    return lambda: operator(signal, coefficients)[0]


def forward_and_backward(job: dict[str, Any], x: Samples) -> Callable[[], Tensor]:
    """Return the same with the gradients of signal and coefficients."""
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
