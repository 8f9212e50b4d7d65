"""What the operators' kernels for the Autograd key share."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["is_plain", "modes_active", "wants_gradient"]

modes_active = torch._C._len_torch_dispatch_stack
"""How many dispatch modes (tracing, counting, fake tensors) are active in this thread."""


def wants_gradient(x: Tensor, coefficients: Tensor, state: Tensor | None) -> bool:
    """Return whether this call has to be recorded for a backward pass."""
    if x.requires_grad or coefficients.requires_grad or (state is not None and state.requires_grad):
        return torch.is_grad_enabled()
    return False


def is_plain(x: Tensor) -> bool:
    """Return whether a signal may go straight to the CPU kernel, which saves the second trip through the dispatcher.

    Not so for subclasses, and not while a dispatch mode (tracing, counting) wants to see the operator.
    """
    return type(x) is Tensor and x.is_cpu and not modes_active()
