"""Detects explicit waits, such as `torch.cuda.synchronize()`, which are not operators."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from torchwhy.counters.accumulator import Tally

__all__ = ["watch_waits"]

# Where PyTorch's waits live. They are looked up when called, so a replacement reaches every caller.
_PLACES = (
    ("torch._C", "_cuda_synchronize", "torch.cuda.synchronize"),
    ("torch._C", "_accelerator_synchronizeDevice", "torch.accelerator.synchronize"),
    ("torch._C", "_xpu_synchronize", "torch.xpu.synchronize"),
    ("torch._C", "_mps_deviceSynchronize", "torch.mps.synchronize"),
    ("torch.cuda.streams.Stream", "synchronize", "torch.cuda.Stream.synchronize"),
    ("torch.cuda.streams.Event", "synchronize", "torch.cuda.Event.synchronize"),
)

_lock = threading.Lock()
_watching = threading.local()  # the tallies of this thread
_users = 0
_originals: list[tuple[Any, str, Any]] = []


@contextmanager
def watch_waits(tally: Tally) -> Iterator[None]:
    """Count explicit waits of this thread into `tally`; other threads run undisturbed and uncounted."""
    _watching.tallies = [*getattr(_watching, "tallies", []), tally]
    _install(1)
    try:
        yield
    finally:
        _install(-1)
        _watching.tallies = _watching.tallies[:-1]


def _install(change: int) -> None:
    global _users
    with _lock:
        _users += change
        if _users == 1 and change == 1:
            for place, name, shown in _PLACES:
                owner = _find(place)
                if name in vars(owner or object):
                    original = vars(owner)[name]
                    _originals.append((owner, name, original))
                    setattr(owner, name, _counted(original, shown))
        elif _users == 0:
            for owner, name, original in reversed(_originals):
                setattr(owner, name, original)
            _originals.clear()


def _find(place: str) -> Any:
    """Return a loaded module, or a class in it; None if it is not loaded."""
    if place in sys.modules:
        return sys.modules[place]
    module, _, name = place.rpartition(".")
    return getattr(sys.modules.get(module), name, None)


def _counted(function: Callable[..., Any], shown: str) -> Callable[..., Any]:
    @wraps(function)
    def wait(*args: Any, **kwargs: Any) -> Any:
        for tally in getattr(_watching, "tallies", ()):
            tally.waited(shown)
        return function(*args, **kwargs)

    return wait
