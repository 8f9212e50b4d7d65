"""What the operators' kernels for the Autograd key share."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

__all__ = ["is_plain", "modes_active", "outside_transforms", "wants_gradient"]

modes_active = torch._C._len_torch_dispatch_stack
"""How many dispatch modes (tracing, counting, fake tensors) are active in this thread."""

transforms_active = torch._C._are_functorch_transforms_active
"""Whether torch.func's transforms (vmap, grad, jacrev) are at work in this thread."""


def wants_gradient(x: Tensor, coefficients: Tensor, state: Tensor | None) -> bool:
    """Return whether this call has to be recorded for a backward pass."""
    if x.requires_grad or coefficients.requires_grad or (state is not None and state.requires_grad):
        return torch.is_grad_enabled()
    return False


def is_plain(x: Tensor) -> bool:
    """Return whether a signal may go straight to the CPU kernel, which saves the second trip through the dispatcher.

    Not so for subclasses, nor under torch.func's transforms, whose tensors are no subclasses, and not while a dispatch
    mode (tracing, counting) wants to see the operator.
    """
    return type(x) is Tensor and x.is_cpu and not modes_active() and not transforms_active()


def outside_transforms(function: type[torch.autograd.Function]) -> type[torch.autograd.Function]:
    """Return the same function for calls outside torch.func's transforms, which needs 10 us less a call.

    The transforms want `setup_context` apart from `forward`, and `apply` then binds every call's arguments to the
    signature first.
    """

    class Outside(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            output = function.forward(*inputs)
            function.setup_context(ctx, inputs, output)
            return output

        backward = staticmethod(function.backward)

    Outside.__name__ = Outside.__qualname__ = function.__name__
    return Outside
