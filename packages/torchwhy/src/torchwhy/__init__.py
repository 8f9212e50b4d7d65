"""Measure, capture and count what any PyTorch program does; nothing here is about audio.

    profiler.measure(lambda: step(batch))
    profiler.compare({"eager": f, "compiled": g})
    with profiler.profile("traces/run", active=3) as p: ...
    with profiler.count() as c: ...
    trace = profiler.load("trace.json.gz")
    job = profiler.load_job("folder-of-ranks")

Names are loaded when they are first used, so importing this package imports no PyTorch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchfx.profiler.allocator.snapshot import load_snapshot
    from torchfx.profiler.counters import count, counted
    from torchfx.profiler.diffing import diff
    from torchfx.profiler.loading.job import load_job
    from torchfx.profiler.loading.trace import load
    from torchfx.profiler.profiling import profile
    from torchfx.profiler.timing import compare, measure
    from torchfx.profiler.trace.model.cut import cut

__all__ = ["compare", "count", "counted", "cut", "diff", "load", "load_job", "load_snapshot", "measure", "profile"]

_HOMES = {
    "compare": "timing",
    "count": "counters",
    "counted": "counters",
    "cut": "trace.model.cut",
    "diff": "diffing",
    "load": "loading.trace",
    "load_job": "loading.job",
    "load_snapshot": "allocator.snapshot",
    "measure": "timing",
    "profile": "profiling",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'torchfx.profiler' has no attribute {name!r}")
    value = getattr(import_module(f"torchfx.profiler.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
