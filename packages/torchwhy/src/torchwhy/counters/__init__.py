"""Counts of what a stretch of any PyTorch program did: deterministic where times are not.

    with torchwhy.count() as c:
        step(batch)
    print(c)

Operators are seen by a `TorchDispatchMode`, graph breaks and recompilations are read from `torch._dynamo`'s own
records, and launches come from `torch.profiler`. `metrics` says what each number means; `counting` says what is not
seen.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchwhy.counters.counting import Counting, count, counted
    from torchwhy.counters.counts import Compilation, CopyTotal, Counts, GraphBreak, Sync

__all__ = ["Compilation", "CopyTotal", "Counting", "Counts", "GraphBreak", "Sync", "count", "counted"]


def __getattr__(name: str) -> Any:
    """Load a name when it is first used: reading saved counts needs no PyTorch, taking them does."""
    for home in ("counts", "counting"):
        if name in __all__ and name in (module := import_module(f"torchwhy.counters.{home}")).__all__:
            return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
