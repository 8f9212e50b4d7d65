"""What a share of the breakdown's window is a part of, in words."""

from __future__ import annotations

from torchfx.profiler.analysis.breakdown import Breakdown
from torchfx.profiler.wording import duration

__all__ = ["of_window", "span_of"]


def span_of(parts: Breakdown) -> str:
    """Return "the 3 steps", "the one recorded step" or "the recording"."""
    if not parts.steps:
        return "the recording"
    return f"the {parts.steps} steps" if parts.steps > 1 else "the one recorded step"


def of_window(parts: Breakdown, share: float) -> str:
    """Return a share of the window as "356 ms of 1.07 s", or the whole as "1.07 s"."""
    whole = duration(parts.window_us)
    return whole if share >= 1 else f"{duration(share * parts.window_us)} of {whole}"
