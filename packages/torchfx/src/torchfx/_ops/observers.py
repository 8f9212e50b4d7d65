"""Who is watching: what must see an operator in the dispatcher, and keeps a call from going straight to its kernel."""

from __future__ import annotations

from typing import Any

import torch
from torch.autograd import forward_ad

__all__ = [
    "dual_level_active",
    "function_modes_active",
    "gradients_are_batched",
    "is_tracing",
    "is_wrapped",
    "modes_active",
    "profiler_enabled",
    "tensors_are_replaced",
    "transforms_active",
]

modes_active = torch._C._len_torch_dispatch_stack
"""How many dispatch modes (tracing, counting, fake tensors) are active in this thread."""

_REPLACING = tuple(getattr(torch._C._TorchDispatchModeKey, name) for name in ("FAKE", "PROXY", "FUNCTIONAL"))


def tensors_are_replaced() -> bool:
    """Return whether a mode puts fake tensors or tracers instead of tensors; others only watch."""
    return bool(modes_active()) and any(torch._C._get_dispatch_mode(key) is not None for key in _REPLACING)


transforms_active = torch._C._are_functorch_transforms_active
"""Whether torch.func's transforms (vmap, grad, jacrev) are at work in this thread."""

is_wrapped = torch._C._functorch.is_functorch_wrapped_tensor
"""Whether one of these transforms follows a tensor."""

function_modes_active = torch._C._len_torch_function_stack
profiler_enabled = torch._C._autograd._profiler_enabled
is_tracing = torch._C._is_tracing
_VMAP_MODE: Any = torch._C._parse_dispatch_key("VmapMode")


def dual_level_active() -> bool:
    """Return whether forward-mode differentiation is at work, whose tangents no attribute of a tensor shows."""
    return forward_ad._current_level >= 0


def gradients_are_batched() -> bool:
    """Return whether autograd runs many backward passes at once (`is_grads_batched`), on tensors without memory."""
    return torch._C._dispatch_tls_local_include_set().has(_VMAP_MODE)
