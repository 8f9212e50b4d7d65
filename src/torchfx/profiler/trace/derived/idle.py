"""When the devices had no work, and what of that time the profiler took for itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from torchfx.profiler.trace.meaning.frames import PROFILER
from torchfx.profiler.trace.meaning.kinds import Kind
from torchfx.profiler.trace.meaning.runtime import DEVICE_SYNCHRONIZE, NO_WORK
from torchfx.profiler.trace.model.intervals import Intervals

if TYPE_CHECKING:
    from torchfx.profiler.trace.model.trace import Trace

__all__ = ["closing_wait", "idle_time", "profiler_overhead"]


def idle_time(trace: Trace) -> Intervals:
    """When, within the window, no device had work and the profiler itself was not the reason."""
    window = Intervals.union([trace.window.start], [trace.window.end])
    return window - trace.gpu.busy - trace.derived(profiler_overhead)


def profiler_overhead(trace: Trace) -> Intervals:
    """When the profiler set up and emptied its buffers, and when it waited at its end with no device at work.

    While it waits for work that is queued, a device that stands still does so for the program's reasons.
    """
    events = trace.events
    rows = events.rows(Kind.OVERHEAD)
    starts, ends = events.ts[rows], events.end[rows]
    last = trace.derived(closing_wait)
    if last >= 0:
        start, end = int(events.ts[last]), int(events.end[last])
        starts, ends = np.append(starts, max(start, min(trace.gpu.span[1], end))), np.append(ends, end)
    return Intervals.union(starts, ends)


def closing_wait(trace: Trace) -> int:
    """The row of the wait for the device that the profiler made when it was stopped, or -1.

    Python frames tell whose it is. Without them it is the last one, after the last step, with no operator or annotation
    around it, and nothing that the program does follows: no operator, no annotation, no call for a device.
    """
    events = trace.events
    rows = events.of(DEVICE_SYNCHRONIZE)
    if not len(rows):
        return -1
    last = int(rows[-1])
    start = int(events.ts[last])
    frames = [frame for frame in trace.frames.ancestors(last) if events.kind[frame] == Kind.PYTHON]
    if frames:
        return last if events.are(PROFILER, frames).any() else -1
    inside = any(events.kind[above] in (Kind.OPERATOR, Kind.ANNOTATION) for above in trace.ancestors(last))
    within_steps = bool(trace.steps_found) and start < max(step.end for step in trace.steps_found)
    return -1 if inside or within_steps or _goes_on(trace, last) else last


def _goes_on(trace: Trace, row: int) -> bool:
    """Whether the program does anything after a wait."""
    events = trace.events
    own = events.rows(Kind.OPERATOR, Kind.ANNOTATION)
    if len(own) and int(events.ts[own[-1]]) >= int(events.ts[row]):
        return True
    calls = events.rows(Kind.RUNTIME)
    calls = calls[(events.lane[calls] == events.lane[row]) & (events.ts[calls] > events.ts[row])]
    return bool((~events.are(NO_WORK, calls)).any())
