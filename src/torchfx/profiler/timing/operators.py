"""How many PyTorch operators one call runs, found without changing what it runs.

A plain `TorchDispatchMode` would not be neutral: under one, compilation is off and a function that was compiled before
stays eager afterwards (PyTorch 2.13), and operators such as flex_attention raise. The profiler only watches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.profiler import ProfilerActivity

__all__ = ["count_events"]


def count_events(fn: Callable[[], Any]) -> int | None:
    """Call `fn` once and return how many operators, compiled regions and device events the profiler saw.

    None when another profiler is running, since a second one would end it.

    >>> import torch
    >>> x = torch.ones(2)
    >>> count_events(lambda: x + x), count_events(lambda: None)
    (1, 0)
    """
    if torch._C._autograd._profiler_enabled():
        return None
    activities = [ProfilerActivity.CPU]
    if torch.cuda.is_initialized():  # replaying a CUDA graph runs no operator, only a runtime call
        activities.append(ProfilerActivity.CUDA)
    with torch.profiler.profile(activities=activities) as profile:
        fn()
    return sum(event.name not in _CLOSING for event in profile.events())


# The profiler's own wait for the device when it stops.
_CLOSING = {"cudaDeviceSynchronize", "hipDeviceSynchronize", "Activity Buffer Request"}
