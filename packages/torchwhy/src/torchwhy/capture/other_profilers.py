"""Other profilers in the same process. PyTorch runs one at a time, and a second one silently empties the first."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["is_running", "make_room", "watch"]


def is_running() -> bool:
    """Whether some PyTorch profiler records in this thread."""
    from torch._C._autograd import _profiler_enabled

    return bool(_profiler_enabled())


_rooms: list[Callable[[], None]] = []
"""What recordings that make room do for that."""


def make_room() -> None:
    """Ask recordings of `torchwhy profile` to end: the program records itself."""
    for leave in _rooms:
        leave()


def watch(before_start: Callable[[], None], exported: Callable[[Path], None], makes_room: bool) -> Callable[[], None]:
    """Watch other profilers; return what ends that.

    Every profiler of PyTorch, old and new, comes through `torch.autograd.profiler.profile._prepare_trace`.

    Args:
        before_start: is called whenever any PyTorch profiler is about to start.
        exported: is called with each timeline that is written.
        makes_room: whether `make_room` calls `before_start`, too.
    """
    from torch.autograd.profiler import profile
    from torch.profiler.profiler import _KinetoProfile

    owner: Any = _KinetoProfile
    original: Callable[[Any], Any] = profile._prepare_trace
    export: Callable[..., Any] = owner.export_chrome_trace

    @functools.wraps(original)
    def prepare(self: Any) -> Any:
        before_start()
        return original(self)

    @functools.wraps(export)
    def exporting(self: Any, path: str, *args: Any, **kwargs: Any) -> Any:
        result = export(self, path, *args, **kwargs)
        exported(Path(path).absolute())
        return result

    def unwatch() -> None:
        if makes_room:
            _rooms.remove(before_start)
        if profile._prepare_trace is prepare:
            setattr(profile, name, original)
        if owner.export_chrome_trace is exporting:
            owner.export_chrome_trace = export

    name = "_prepare_trace"
    setattr(profile, name, prepare)
    owner.export_chrome_trace = exporting
    if makes_room:
        _rooms.append(before_start)
    return unwatch
