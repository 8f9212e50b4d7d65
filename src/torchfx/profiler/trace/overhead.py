"""Time the profiler took for itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from torchfx.profiler.trace.intervals import Intervals
from torchfx.profiler.trace.kinds import Kind

if TYPE_CHECKING:
    from torchfx.profiler.trace.trace import Trace

__all__ = ["closing_sync", "profiler_overhead"]


def profiler_overhead(trace: Trace) -> Intervals:
    """When the profiler set up and emptied its buffers, and when it waited for the device at its end."""
    events = trace.events
    rows = events.rows(Kind.OVERHEAD)
    starts, ends = events.ts[rows], events.end[rows]
    if trace.closing_sync >= 0:
        starts = np.append(starts, events.ts[trace.closing_sync])
        ends = np.append(ends, events.end[trace.closing_sync])
    return Intervals.union(starts, ends)


def closing_sync(trace: Trace) -> int:
    """The row of the wait for the device that the profiler made when it was stopped, or -1.

    It is the last one, no operator or annotation is around it, and nothing the program does follows.
    """
    events = trace.events
    rows = events.find(r"(cuda|hip)(Device|Ctx)Synchronize", Kind.RUNTIME)
    if not len(rows):
        return -1
    last = int(rows[-1])
    after = events.rows(Kind.OPERATOR, Kind.ANNOTATION)
    followed = len(after) > 0 and int(events.ts[after[-1]]) >= int(events.ts[last])
    inside = any(events.kind[above] in (Kind.OPERATOR, Kind.ANNOTATION) for above in trace.ancestors(last))
    return -1 if followed or inside else last
