"""Activity of the host during a stretch of time, and its outermost calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from torchwhy.trace.derived.compiled import compiled_of
from torchwhy.trace.derived.launches import graph_captures
from torchwhy.trace.file.columns import Int32, Int64
from torchwhy.trace.meaning.annotations import BACKWARD_LABEL, GARBAGE_COLLECTION, LOADED_BY_WORKERS, NEXT_BATCH, STEP
from torchwhy.trace.meaning.frames import BACKWARD_CALL, COLLECTING, PROFILER
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.operators import SAMPLING
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.tree import Tree

if TYPE_CHECKING:
    from torchwhy.trace.model.trace import Trace

__all__ = [
    "backward_calls",
    "batch_waits",
    "collections",
    "compiling",
    "host_during",
    "otherwise_engaged",
    "outer_operators",
    "profiling",
    "worker_starts",
]

WORKERS_NS: Final = 5_000_000
"""Worker processes take tens of milliseconds to start; what takes less between two passes over the data is no start."""


def outer_operators(trace: Trace) -> Int32:
    """Rows of the operators that no operator is around, by thread and start."""
    tree = Tree(trace.events, Kind.OPERATOR)
    found: Int32 = tree.rows[tree.parent[tree.rows] < 0]
    return found


def backward_calls(trace: Trace) -> Intervals:
    """When the program waited for the backward pass, whose thread may be missing from the trace."""
    rows = trace.events.of(BACKWARD_CALL | BACKWARD_LABEL)
    return trace.events.times_of(rows)


def compiling(trace: Trace) -> Intervals:
    """When torch.compile was at work."""
    return trace.derived(compiled_of).compiling


def batch_waits(trace: Trace) -> Intervals:
    """When the program got its next batch, by annotations; the start of a loader's workers included."""
    rows = trace.events.of(NEXT_BATCH)
    return trace.events.times_of(rows) | trace.derived(worker_starts)


def worker_starts(trace: Trace) -> Intervals:
    """When a DataLoader ended its worker processes after a pass over its data and started others for the next one.

    From the call that finds no batch left to the end of the next one, which waits for the first batch. Between them
    lies no step, only the operators that draw an order; and the start of processes, `WORKERS_NS` or more.
    """
    events = trace.events
    calls = events.of(LOADED_BY_WORKERS)
    operators = trace.derived(outer_operators)
    operators = operators[~events.are(SAMPLING, operators)]
    begins = np.sort(events.ts[operators])
    last, first = calls[:-1], calls[1:]
    before = np.searchsorted(begins, events.ts[first])
    again = (np.searchsorted(begins, events.end[last]) == before) & (events.lane[first] == events.lane[last])
    again &= before > 0  # a loader that is tried out alone computes nothing between its batches
    again &= events.ts[first] - events.end[last] >= WORKERS_NS
    return Intervals.union(events.ts[last[again]], events.end[first[again]])


def collections(trace: Trace) -> Intervals:
    """When Python collected garbage."""
    rows = trace.events.of(GARBAGE_COLLECTION | COLLECTING)
    return trace.events.times_of(rows)


def profiling(trace: Trace) -> Intervals:
    """When the profiler's own Python ran, as its step does, where Python stacks were recorded."""
    return trace.events.times_of(trace.events.of(PROFILER))


def otherwise_engaged(trace: Trace) -> Intervals:
    """When the program got a batch, compiled, or captured a graph: separate rules report this."""
    return trace.derived(batch_waits) | trace.derived(compiling) | trace.derived(graph_captures)


def host_during(trace: Trace, start: int, end: int, *, dominant: float = 0.7) -> tuple[Int32, Int64]:
    """The host's activity in [start, end): the innermost event that takes most of it, or the few that share it.

    The main thread's, or where it did nothing, those of all threads.

    Returns:
        Rows and how much of the stretch each covers, nanoseconds, the longest first; none below a twentieth of it.
    """
    tree = trace.frames
    rows = tree.rows[tree.parent[tree.rows] < 0]
    main = trace.events.lane[rows] == trace.main_lane
    found, times = _innermost(trace, rows[main], start, end, dominant)
    if not len(found):  # the main thread waits for others, such as that of the backward pass
        found, times = _innermost(trace, rows[~main], start, end, dominant)
    some = times * 20 >= end - start
    return found[some][:5].astype(np.int32), times[some][:5]


def _innermost(trace: Trace, rows: Int32, start: int, end: int, dominant: float) -> tuple[Int32, Int64]:
    events, tree = trace.events, trace.frames
    found = _overlapping(trace, rows, start, end)
    while len(found[0]):
        best = int(found[0][0])
        inner = _overlapping(trace, tree.children(best), start, end)
        if events.are(STEP, [best])[0]:  # a step says nothing: look into it
            rows, times = np.concatenate((inner[0], found[0][1:])), np.concatenate((inner[1], found[1][1:]))
            order = np.argsort(-times, kind="stable")
            found = rows[order], times[order]
        elif found[1][0] >= dominant * (end - start) and len(inner[0]) and inner[1][0] >= dominant * (end - start):
            found = inner
        else:
            break
    return found


def _overlapping(trace: Trace, rows: Int32, start: int, end: int) -> tuple[Int32, Int64]:
    within = np.minimum(trace.events.end[rows], end) - np.maximum(trace.events.ts[rows], start)
    rows, within = rows[within > 0], within[within > 0]
    order = np.argsort(-within, kind="stable")
    return rows[order], within[order]
