"""Jobs of many ranks: a folder with one trace per rank, read in parallel, one small summary kept of each.

What reads them is loaded when it is first used: whoever only looks which files a folder holds needs none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torchfx.profiler.ranks.job import Job, load_job

__all__ = ["Job", "load_job"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from torchfx.profiler.ranks import job

    return getattr(job, name)
