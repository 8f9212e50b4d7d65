"""The program as it usually runs: without a cold first step, and without one step that something held up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from torchwhy.trace.derived.gaps import device_window
from torchwhy.trace.derived.idle import shown_from
from torchwhy.trace.model.intervals import Intervals, Window
from torchwhy.trace.model.steps import main_phase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchwhy.trace.model.steps import Step
    from torchwhy.trace.model.trace import Trace

__all__ = [
    "Typical",
    "decides",
    "settled",
    "shown_window",
    "steady_device_window",
    "steady_window",
    "typical",
    "unrecorded_by_number",
    "unrecorded_steps",
]

COLD: Final = 3.0
"""A first step is cold if it takes at least this many times as long as the others (median of two or more)."""

OUTLIER: Final = 1.5
"""A step that takes at least this many times the median may be an outlier; see `typical`."""

COLD_STEP: Final = "the first, cold one"
UNSHOWN: Final = "its unrecorded beginning"
"""The parts that are left out of a window, in words."""

UNRECORDED: Final = "torchwhy_unrecorded_steps"

ENOUGH: Final = 10
"""At least this number of unrecorded steps shows the usual time."""

RARE: Final = 0.05
"""The work of fewer steps than this isn't usual."""


@dataclass(frozen=True)
class Typical:
    """Stretches of time as parts of the program as it usually runs.

    Attributes:
        when: the stretches to judge by, within `window`; without an outlier's where there is one.
        window: what they are a part of.
        share: 0 to 1. With an outlier, the share of the other steps, whose length `window` would have been.
        outlier: the longest step that was left out because something held it up.
    """

    when: Intervals
    window: Window
    share: float
    outlier: Step | None = None


def settled(trace: Trace) -> int:
    """From when on the program runs as it usually does, nanoseconds: after a cold first step, if there is one."""
    steps = main_phase(trace.steps_found)
    if len(steps) >= 3 and steps[0].duration > COLD * float(np.median([step.duration for step in steps[1:]])):
        return steps[1].start
    return trace.window.start


def steady_window(trace: Trace) -> Window:
    """The trace's window without a cold first step."""
    return _from(trace.window, settled(trace), COLD_STEP)


def shown_window(trace: Trace) -> Window:
    """The same without a beginning in which the devices' work was not recorded."""
    return _from(trace.derived(steady_window), trace.derived(shown_from), UNSHOWN)


def steady_device_window(trace: Trace) -> Window:
    """Return the window that shares of the device's time refer to, without a cold first step."""
    return _from(device_window(trace), settled(trace), COLD_STEP)


def typical(trace: Trace, when: Intervals, window: Window) -> Typical:
    """Tell what stretches of time take usually from what they took once.

    One step of three that the operating system held up is no trait of the program. A step is an outlier where it is
    half as long again as the median and most of the time lies in it, among at least three, and in no other half as
    much; or where the steps that weren't recorded show that hardly any is as long. Then the others are judged.

    Args:
        trace: whose steps.
        when: stretches of time; what lies outside of the window doesn't count.
        window: a window of the trace.
    """
    inside = when.clip(window.start, window.end)
    steps = [step for step in main_phase(trace.steps_found) if step.start >= window.start]
    held_up = _held_up(trace, steps, inside)
    if not held_up:
        return Typical(inside, window, window.share(inside))
    out = Intervals.union([step.start for step in held_up], [step.end for step in held_up])
    rest = inside - out
    others = window.end - window.start - out.clip(window.start, window.end).total
    worst = max(held_up, key=lambda step: step.duration)
    return Typical(rest, window, rest.total / others if others > 0 else 0.0, worst)


def decides(longest: float, idle: float, window: float) -> bool:
    """Whether a single stretch decides how much of a window is idle: then its shares show little about the program.

    Args:
        longest: the longest idle stretch, in the unit of the others.
        idle: all idle time like it.
        window: what it is a part of.
    """
    return longest > 0 and longest >= max(0.5 * idle, 0.3 * window)


def unrecorded_steps(trace: Trace) -> npt.NDArray[np.float64]:
    """How long the steps took that `torchwhy profile` saw and didn't record, microseconds; empty for other recordings.

    They stand in the trace's top level under `UNRECORDED`, a list of [number of the step, microseconds].
    """
    return np.array(list(unrecorded_by_number(trace).values()), np.float64)


def unrecorded_by_number(trace: Trace) -> dict[int, float]:
    """The same by the number of the step, counted as `torchwhy profile --wait` counts them."""
    written = trace.info.top.get(UNRECORDED)
    pairs = [pair for pair in written if isinstance(pair, list) and len(pair) == 2] if isinstance(written, list) else []
    return {
        number: time for number, time in pairs if isinstance(number, int) and isinstance(time, int | float) and time > 0
    }


def _held_up(trace: Trace, steps: Sequence[Step], inside: Intervals) -> list[Step]:
    """The steps that are no measure of the others; never all of them."""
    length = np.array([step.duration for step in steps])
    seen = trace.derived(unrecorded_steps) * 1000
    if len(seen) >= ENOUGH and len(steps):
        limit = OUTLIER * float(np.median(seen))
        if (seen > limit).mean() <= RARE and 2 * np.count_nonzero(length <= limit) >= len(steps):  # not all are slowed
            return [step for step in steps if step.duration > limit]
    if len(steps) < 3:
        return []
    spent = inside.overlap([step.start for step in steps], [step.end for step in steps])
    worst = int(spent.argmax())
    alone = np.count_nonzero(2 * spent >= spent[worst]) == 1  # what two steps do, such as save, is a habit
    once = length[worst] > OUTLIER * np.median(length) and 2 * (spent[worst] - np.median(spent)) > inside.total
    once = bool(once) and alone
    return [steps[worst]] if once else []


def _from(window: Window, start: int, without: str) -> Window:
    if not window.start < start < window.end:
        return window
    return Window(f"{window.name} without {without}", start, window.end)
