"""The program as it usually runs: without a cold first step, and without one step that something held up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from torchfx.profiler.trace.derived.gaps import device_window
from torchfx.profiler.trace.model.intervals import Intervals, Window

if TYPE_CHECKING:
    from torchfx.profiler.trace.model.steps import Step
    from torchfx.profiler.trace.model.trace import Trace

__all__ = ["Typical", "settled", "steady_device_window", "steady_window", "typical"]

COLD: Final = 3.0
"""A first step so many times as long as the others (median of two or more) is a cold one."""

OUTLIER: Final = 1.5
"""A step so many times as long as the median may be an outlier; see `typical`."""


@dataclass(frozen=True)
class Typical:
    """What stretches of time take of the program as it usually runs.

    Attributes:
        when: the stretches to judge by, within `window`; without an outlier's where there is one.
        window: what they are a part of.
        share: 0 to 1. With an outlier that of the other steps, whose length is what `window` would have been.
        outlier: the one step that most of the time lies in, and which is longer than the others because of it.
    """

    when: Intervals
    window: Window
    share: float
    outlier: Step | None = None


def settled(trace: Trace) -> int:
    """From when on the program runs as it usually does, nanoseconds: after a cold first step, if there is one."""
    steps = trace.steps_found
    if len(steps) >= 3 and steps[0].duration > COLD * float(np.median([step.duration for step in steps[1:]])):
        return steps[1].start
    return trace.window.start


def steady_window(trace: Trace) -> Window:
    """The trace's window without a cold first step."""
    return _from(trace.window, settled(trace))


def steady_device_window(trace: Trace) -> Window:
    """What shares of the device's time are a part of, without a cold first step."""
    return _from(device_window(trace), settled(trace))


def typical(trace: Trace, when: Intervals, window: Window) -> Typical:
    """Tell what stretches of time take usually from what they took once.

    One step of three that the operating system held up is no trait of the program. Where at least three steps are
    known, one is half as long again as their median, and most of the time lies in it, the others are judged.

    Args:
        trace: whose steps.
        when: stretches of time; what lies outside of the window doesn't count.
        window: a window of the trace.
    """
    inside = when.clip(window.start, window.end)
    steps = [step for step in trace.steps_found if step.start >= window.start]
    if len(steps) >= 3:
        length = np.array([step.duration for step in steps])
        spent = inside.overlap([step.start for step in steps], [step.end for step in steps])
        worst = int(spent.argmax())
        held_up = length[worst] > OUTLIER * np.median(length)
        if held_up and 2 * (spent[worst] - np.median(spent)) > inside.total:
            step = steps[worst]
            rest = inside - Intervals.union([step.start], [step.end])
            others = window.end - window.start - step.duration
            return Typical(rest, window, rest.total / others if others > 0 else 0.0, step)
    return Typical(inside, window, window.share(inside))


def _from(window: Window, start: int) -> Window:
    if not window.start < start < window.end:
        return window
    return Window(f"{window.name} without the first, cold one", start, window.end)
