"""What a share of the window is a part of, in words."""

from __future__ import annotations

from torchfx.profiler.trace.model.trace import Trace
from torchfx.profiler.wording import duration

__all__ = ["of_window", "span_of"]


def span_of(trace: Trace) -> str:
    """Return "the 3 steps", "the one recorded step" or "the recording"."""
    steps = len(trace.steps_found)
    if not steps:
        return "the recording"
    return f"the {steps} steps" if steps > 1 else "the one recorded step"


def of_window(trace: Trace, share: float) -> str:
    """Return a share of the window as "356 ms of 1.07 s", or the whole as "1.07 s"."""
    whole = duration(trace.window.us)
    return whole if share >= 1 else f"{duration(share * trace.window.us)} of {whole}"
