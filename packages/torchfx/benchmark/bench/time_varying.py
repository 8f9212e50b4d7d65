"""Resonances that sweep: an all-pole filter of second order with separate coefficients for each sample."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from bench.chains import Chain
from torchfx import _ops

__all__ = ["coefficients", "deviation", "torchfx_training", "torchlpc_training"]

Samples = npt.NDArray[np.float32]
RADIUS = 0.95


def coefficients(x: Samples) -> Tensor:
    """Return a[1], a[2] of poles whose angle sweeps, a little differently in each channel: float32, (..., time, 2)."""
    channels, time = x.shape
    angle = torch.linspace(0.05, 2.0, time) + torch.linspace(0.0, 0.5, channels)[:, None]
    return torch.stack([-2 * RADIUS * angle.cos(), torch.full_like(angle, RADIUS**2)], dim=-1)


def deviation(chain: Chain, x: Samples, y: npt.NDArray[Any]) -> float:
    """Return the largest difference from the recurrence in float64, relative to its peak."""
    a = coefficients(x).double().numpy()
    exact = np.zeros((x.shape[0], x.shape[1] + 2))
    for t in range(x.shape[1]):
        exact[:, t + 2] = x[:, t] - a[:, t, 0] * exact[:, t + 1] - a[:, t, 1] * exact[:, t]
    return float(np.abs(y - exact[:, 2:]).max() / np.abs(exact).max())


def torchfx_training(job: dict[str, Any], x: Samples) -> Callable[[], Tensor]:
    """Return the forward pass with the gradients of signal and coefficients."""
    return _training(lambda signal, a: _ops.allpole_forward(signal, a)[0], x)


def torchlpc_training(job: dict[str, Any], x: Samples) -> Callable[[], Tensor]:
    """Return the same by torchlpc."""
    import torchlpc

    return _training(torchlpc.sample_wise_lpc, x)


def _training(run: Callable[[Tensor, Tensor], Tensor], x: Samples) -> Callable[[], Tensor]:
    signal, a = torch.from_numpy(x).clone().requires_grad_(), coefficients(x).requires_grad_()
    grad_y = torch.from_numpy(np.ascontiguousarray(x[..., ::-1]))

    def step() -> Tensor:
        y = run(signal, a)
        torch.autograd.grad(y, (signal, a), grad_y)
        return y.detach()

    return step
