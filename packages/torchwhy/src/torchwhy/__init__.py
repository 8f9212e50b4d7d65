"""Find out why a PyTorch program is slow: measure, profile, count, and explain traces.

    torchwhy.measure(lambda: step(batch))
    torchwhy.compare({"eager": f, "compiled": g})
    with torchwhy.profile("traces/run", active=3) as p: ...
    with torchwhy.count() as c: ...
    torchwhy.listen()  # lets torchwhy profile --pid record this process
    trace = torchwhy.load("trace.json.gz")
    job = torchwhy.load_job("folder-of-ranks")

Names are loaded on first use, so importing this package does not import PyTorch. `load`, `load_job`, `load_snapshot`,
`diff` and `cut` never need PyTorch; the other functions do.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchwhy.allocator.snapshot import load_snapshot
    from torchwhy.capture.attached import listen
    from torchwhy.counters import count, counted
    from torchwhy.diffing import diff
    from torchwhy.loading.job import load_job
    from torchwhy.loading.trace import load
    from torchwhy.notebook import trace_in_notebook as trace_in_notebook  # not public: what a trace shows itself by
    from torchwhy.profiling import profile
    from torchwhy.timing import compare, measure
    from torchwhy.trace.model.cut import cut

__all__ = [
    "compare",
    "count",
    "counted",
    "cut",
    "diff",
    "listen",
    "load",
    "load_job",
    "load_snapshot",
    "measure",
    "profile",
]

_HOMES = {
    "compare": "timing",
    "count": "counters",
    "counted": "counters",
    "cut": "trace.model.cut",
    "diff": "diffing",
    "listen": "capture.attached",
    "load": "loading.trace",
    "load_job": "loading.job",
    "load_snapshot": "allocator.snapshot",
    "measure": "timing",
    "profile": "profiling",
    "trace_in_notebook": "notebook",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("torchwhy")
    if name not in _HOMES:
        raise AttributeError(f"module 'torchwhy' has no attribute {name!r}")
    try:
        value = getattr(import_module(f"torchwhy.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        from torchwhy.errors import MissingPackageError

        raise MissingPackageError(f"torchwhy.{name} needs PyTorch: pip install torch") from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
