"""`counts.json` of a run: what one recorded step did, for `torchfx gate`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from torchfx.profiler.capture.recorder import Window
from torchfx.profiler.capture.result import TROUBLE

__all__ = ["write_counts"]


def write_counts(folder: Path, windows: Sequence[Window], memory: bool, device: bool) -> list[str]:
    """Write the counts of a step; return what was wrong, for the report.

    Args:
        folder: the run's. windows: what was recorded.
        memory: whether allocations were recorded. device: whether the GPU was.
    """
    import torch

    from torchfx.profiler.counters.from_trace import Recorded, counts_from_trace

    try:
        recorded = [
            Recorded(window.results.kineto_results.experimental_event_tree(), window.compiled) for window in windows
        ]
        counts = counts_from_trace(recorded, memory=memory, device=device, device_in_use=torch.cuda.is_initialized())
        counts.save(folder)
    except TROUBLE as error:
        return [f"there is no counts.json for `torchfx gate`: {type(error).__name__}: {error}"]
    return []
