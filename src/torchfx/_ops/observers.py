"""Who is watching: what must see an operator in the dispatcher, and keeps a call from going straight to its kernel."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd import forward_ad

__all__ = ["dual_level_active", "is_direct", "modes_active", "transforms_active"]

modes_active = torch._C._len_torch_dispatch_stack
"""How many dispatch modes (tracing, counting, fake tensors) are active in this thread."""

transforms_active = torch._C._are_functorch_transforms_active
"""Whether torch.func's transforms (vmap, grad, jacrev) are at work in this thread."""

_function_modes_active = torch._C._len_torch_function_stack
_profiler_enabled = torch._C._autograd._profiler_enabled
_tracing_state = torch._C._get_tracing_state
_DTYPES = frozenset((torch.float32, torch.float64))


def dual_level_active() -> bool:
    """Return whether forward-mode differentiation is at work, whose tangents no attribute of a tensor shows."""
    return forward_ad._current_level >= 0


def is_direct(x: Tensor) -> bool:
    """Return whether a call on this signal may go straight to the CPU's kernel, past the dispatcher.

    Not so for subclasses, for views that change the sign of their memory, for types that autocast may change, and not
    while a mode, a transform, a profiler or a tracer wants to see the operator.
    """
    return (
        type(x) is Tensor
        and x.is_cpu
        and x.dtype in _DTYPES
        and not (
            modes_active()
            or transforms_active()
            or _profiler_enabled()
            or forward_ad._current_level >= 0
            or _function_modes_active()
            or x.is_neg()
            or _tracing_state() is not None
        )
    )
