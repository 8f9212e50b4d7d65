"""The gradient of a median goes to the sample that it is, of equal ones to the earliest in the window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from torchfx._ops.differentiation import Gradient

__all__ = ["GRADIENTS"]


def _backward(forward: Callable[..., Any], arguments: Sequence[Any], grads: Sequence[Tensor | None]) -> list[Any]:
    """Return the gradient of the samples: each median is looked for in its window."""
    (x, window), (grad,) = arguments, grads
    assert grad is not None
    found = x.detach()
    y, count = forward(found, window), x.shape[-1] - window + 1
    at = torch.arange(count, device=x.device).expand(y.shape)
    for i in reversed(range(window)):
        at = torch.where(found[..., i : i + count] == y, torch.arange(i, i + count, device=x.device), at)
    return [torch.zeros_like(found).scatter_add(-1, at, grad)]


GRADIENTS = {"sliding_median": Gradient(_backward, None)}
