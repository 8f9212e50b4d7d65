"""Other profilers in the same process. PyTorch runs one at a time, and a second one silently empties the first."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

__all__ = ["is_running", "watch"]


def is_running() -> bool:
    """Whether some PyTorch profiler records in this thread."""
    from torch._C._autograd import _profiler_enabled

    return bool(_profiler_enabled())


def watch(before_start: Callable[[], None]) -> Callable[[], None]:
    """Call `before_start` whenever any PyTorch profiler is about to start; return what ends the watch.

    Every profiler of PyTorch, old and new, comes through `torch.autograd.profiler.profile._prepare_trace`.
    """
    from torch.autograd.profiler import profile

    original: Callable[[Any], Any] = profile._prepare_trace

    @functools.wraps(original)
    def prepare(self: Any) -> Any:
        before_start()
        return original(self)

    def unwatch() -> None:
        if profile._prepare_trace is prepare:
            setattr(profile, name, original)

    name = "_prepare_trace"
    setattr(profile, name, prepare)
    return unwatch
