"""Count the operations of a block of PyTorch code: unlike times, counts are deterministic.

    with torchwhy.count() as c:
        step(batch)
    print(c)

A `TorchDispatchMode` counts operators, `torch._dynamo`'s records give graph breaks and recompilations, and
`torch.profiler` counts launches. `metrics` describes each number; `counting` describes what is not counted.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchwhy.counters.counting import Counting, count, counted
    from torchwhy.counters.counts import Compilation, CopyTotal, Counts, GraphBreak, Sync

__all__ = ["Compilation", "CopyTotal", "Counting", "Counts", "GraphBreak", "Sync", "count", "counted"]


def __getattr__(name: str) -> Any:
    """Load a name on first use: reading saved counts does not need PyTorch, counting does."""
    for home in ("counts", "counting"):
        if name in __all__ and name in (module := import_module(f"torchwhy.counters.{home}")).__all__:
            return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
