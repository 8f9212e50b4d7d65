"""What the operators' kernels for the Autograd key share."""

from __future__ import annotations

from collections.abc import Callable
from types import new_class
from typing import Any

import torch
from torch import Tensor

__all__ = ["is_plain", "modes_active", "outside_transforms", "unobserved", "wants_gradient"]

modes_active = torch._C._len_torch_dispatch_stack
"""How many dispatch modes (tracing, counting, fake tensors) are active in this thread."""

transforms_active = torch._C._are_functorch_transforms_active
"""Whether torch.func's transforms (vmap, grad, jacrev) are at work in this thread."""

profiler_enabled = torch._C._autograd._profiler_enabled
"""Whether torch.profiler records what the dispatcher calls."""


def wants_gradient(x: Tensor, coefficients: Tensor, state: Tensor | None) -> bool:
    """Return whether this call has to be recorded for a backward pass."""
    if x.requires_grad or coefficients.requires_grad or (state is not None and state.requires_grad):
        return torch.is_grad_enabled()
    return False


def is_plain(x: Tensor) -> bool:
    """Return whether a signal may go straight to the CPU kernel, which saves the second trip through the dispatcher.

    Not so for subclasses, nor under torch.func's transforms, whose tensors are no subclasses, nor for views that change
    the sign of their memory, and not while a dispatch mode (tracing, counting) wants to see the operator.
    """
    return type(x) is Tensor and x.is_cpu and not (modes_active() or transforms_active() or x.is_neg())


def unobserved(x: Tensor) -> bool:
    """Return whether nobody would miss a call that goes to the CPU kernel and past the dispatcher altogether."""
    return is_plain(x) and not profiler_enabled()


def outside_transforms(function: type[torch.autograd.Function]) -> Callable[..., Any]:
    """Return `function.apply` for calls outside torch.func's transforms, which needs 12 us less a call.

    The transforms want `setup_context` apart from `forward`, and then `apply` binds every call's arguments to the
    signature first; here PyTorch's own `apply` is reached without that.
    """

    def forward(ctx: Any, *inputs: Any) -> Any:
        output = function.forward(*inputs)
        function.setup_context(ctx, inputs, output)
        return output

    parts = {"forward": staticmethod(forward), "backward": staticmethod(function.backward)}
    # Named when it is made: so is the node in the graph that profilers show.
    outside: type[torch.autograd.Function] = new_class(
        function.__name__, (torch.autograd.Function,), exec_body=lambda body: body.update(parts)
    )
    apply: Callable[..., Any] = super(torch.autograd.Function, outside).apply  # type: ignore[misc]
    return apply
