"""What the operators' kernels for the Autograd key share."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch._functorch.utils import unwrap_dead_wrappers

__all__ = ["is_plain", "record", "wants_gradient"]


_active_modes = torch._C._len_torch_dispatch_stack


def wants_gradient(x: Tensor, coefficients: Tensor, state: Tensor | None) -> bool:
    """Return whether this call has to be recorded for a backward pass."""
    if x.requires_grad or coefficients.requires_grad or (state is not None and state.requires_grad):
        return torch.is_grad_enabled()
    return False


def is_plain(x: Tensor) -> bool:
    """Return whether a signal may go straight to the CPU kernel, which saves the second trip through the dispatcher.

    Not so for subclasses, and not while a dispatch mode (tracing, counting) wants to see the operator.
    """
    return type(x) is Tensor and x.is_cpu and not _active_modes()


def record(function: type[torch.autograd.Function], *args: Any) -> Any:
    """Apply an autograd function to all of its arguments.

    `apply` of a function that transforms can nest reads its signature anew at each call, to fill in defaults: 15 of
    29 us for a short signal. Outside transforms this goes straight to what `apply` then calls.
    """
    if torch._C._are_functorch_transforms_active():
        return function.apply(*args)
    return super(torch.autograd.Function, function).apply(*unwrap_dead_wrappers(args))  # type: ignore[misc]
