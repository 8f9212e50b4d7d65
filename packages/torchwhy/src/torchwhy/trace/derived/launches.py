"""Launches: those that a graph's capture only notes, those without work, and how many wait in the queue of a stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from torchwhy.trace.file.columns import Int32, Int64, numbered_together
from torchwhy.trace.meaning.frames import CAPTURE_BEGIN_CALL, CAPTURE_END_CALL, CAPTURE_FUNCTION
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.runtime import CAPTURE_BEGIN, CAPTURE_END, COPY_CALL, GRAPH_INSTANTIATE, OCCUPANCY_QUERY
from torchwhy.trace.model.device import devices_of, streams_of
from torchwhy.trace.model.intervals import Intervals
from torchwhy.wording import counted

if TYPE_CHECKING:
    from torchwhy.trace.model.trace import Trace

__all__ = [
    "Queue",
    "adapted_kernels",
    "captured_graphs",
    "capturing",
    "device_known",
    "graph_captures",
    "kernel_launches",
    "launch_queues",
    "lost_copies",
    "lost_launches",
    "queue_at_launch",
]


@dataclass(frozen=True)
class Queue:
    """The queue of one stream, as each launch found it.

    Attributes:
        device, stream: whose.
        launches: rows of the calls that put work there, by start; a graph's launch counts once.
        starts: when the first work of each began on the device, nanoseconds.
        depth: how many earlier launches hadn't begun when each was issued.
    """

    device: int
    stream: int
    launches: Int32
    starts: Int64
    depth: Int64


def capturing(trace: Trace) -> dict[int, Intervals]:
    """When each thread recorded launches into a CUDA graph instead of making them, by lane.

    From the call that begins a capture to the one that ends it, of the runtime or of Python. Where neither is recorded,
    functions such as `capture_model` in which most launches left no work.
    """
    events, begun = trace.events, trace.derived(captured_graphs)
    functions = events.of(CAPTURE_FUNCTION)
    functions = functions[_mostly_empty(trace, functions)]
    # Evidence from calls takes precedence over the names of functions.
    start = np.sort(np.concatenate([np.empty(0, np.int64), *(starts for starts, _ in begun.values())]))
    functions = functions[np.searchsorted(start, events.ts[functions]) == np.searchsorted(start, events.end[functions])]
    found = {lane: Intervals.union(starts, ends) for lane, (starts, ends) in begun.items()}
    for lane in np.unique(events.lane[functions]).tolist():
        named = events.times_of(functions[events.lane[functions] == lane])
        found[lane] = found[lane] | named if lane in found else named
    return found


def captured_graphs(trace: Trace) -> dict[int, tuple[Int64, Int64]]:
    """When each capture of a graph began and ended, by lane, where the calls of the runtime or of Python show it."""
    events = trace.events
    begins, ends = events.of(CAPTURE_BEGIN | CAPTURE_BEGIN_CALL), events.of(CAPTURE_END | CAPTURE_END_CALL)
    found: dict[int, tuple[Int64, Int64]] = {}
    for lane in np.unique(events.lane[begins]).tolist():
        start = np.sort(events.ts[begins[events.lane[begins] == lane]])
        end = np.sort(events.end[ends[events.lane[ends] == lane]])
        i = np.searchsorted(end, start)
        # Python's call has that of the runtime in it: of those that end together the innermost counts.
        last = (i < len(end)) & (np.append(i[1:], -1) != i)
        found[lane] = start[last], end[i[last]]
    return found


def graph_captures(trace: Trace) -> Intervals:
    """When any thread captured a CUDA graph, or made a captured one ready to be launched."""
    rows = trace.events.of(GRAPH_INSTANTIATE)
    found = trace.events.times_of(rows)
    for times in trace.derived(capturing).values():
        found = found | times
    return found


def _mostly_empty(trace: Trace, rows: Int32) -> npt.NDArray[np.bool_]:
    """Whether of the launches within each of these host events more than half, and at least one, left no work."""
    events, launches = trace.events, trace.links.launches
    found = np.zeros(len(rows), np.bool_)
    for i, row in enumerate(rows.tolist()):
        inside = launches[(events.ts[launches] >= events.ts[row]) & (events.end[launches] <= events.end[row])]
        inside = inside[events.lane[inside] == events.lane[row]]
        found[i] = np.count_nonzero(trace.links.work_count[inside] == 0) * 2 > len(inside)
    return found


def kernel_launches(trace: Trace) -> Int32:
    """Rows of the calls that launch kernels, by start, without those a graph capture only records."""
    rows = trace.links.launches
    captured = np.zeros(len(rows), np.bool_)
    for lane, times in trace.derived(capturing).items():
        ts = trace.events.ts[rows]
        captured |= (trace.events.lane[rows] == lane) & (times.overlap(ts, ts + 1) > 0)
    return rows[~captured]


def lost_launches(trace: Trace) -> Int32:
    """The `kernel_launches` whose kernel isn't in the trace; graph launches are left out.

    A call of the driver inside one of the runtime may have the same id: then either stands for both.
    """
    rows = trace.derived(kernel_launches)
    rows = rows[~np.isin(rows, trace.links.graph_launches) & (trace.links.work_count[rows] == 0)]
    found: Int32 = rows
    if len(rows):  # looking through all work takes time
        ids = trace.events.integers("correlation", rows)
        found = rows[~np.isin(ids, trace.events.integers("correlation", trace.links.work))]
    return found


def lost_copies(trace: Trace) -> str:
    """The sign that copies were not recorded, though other work of a device was; "" where nothing shows it."""
    events = trace.events
    calls = events.of(COPY_CALL)
    if not trace.has_gpu or not len(calls) or len(events.rows(Kind.MEMCPY)):
        return ""
    noted = np.zeros(len(calls), np.bool_)  # by the capture of a graph, without a copy
    for lane, times in trace.derived(capturing).items():
        noted |= (events.lane[calls] == lane) & (events.covered(calls, times) > 0)
    made = int(np.count_nonzero(~noted))
    return f"no copy was recorded, and {counted(made, 'call')} made some" if made else ""


def device_known(trace: Trace) -> bool:
    """Whether idle time of the device means what it says, for rules that also speak about programs without a device.

    It doesn't where launches left no work, where copies or replayed graphs were not recorded, or where times are
    broken.
    """
    lost, launches = len(trace.derived(lost_launches)), len(trace.derived(kernel_launches))
    graphs = len(trace.links.unrecorded_graphs)
    broken = trace.events.damage.total
    known = not graphs and not lost_copies(trace)
    return known and lost * 10 <= launches and broken * 100 <= max(len(trace.links.work), 1)


def launch_queues(trace: Trace) -> tuple[Queue, ...]:
    """The queue of every stream that had work whose launch is known."""
    events, links = trace.events, trace.links
    known = links.launch >= 0
    work, launch = links.work[known], links.launch[known]
    if not len(work):
        return ()
    streams, which = numbered_together(devices_of(events, work), streams_of(events, work))
    queues = []
    for i in range(streams.shape[1]):
        here = which == i
        calls, first = np.unique(launch[here], return_index=True)  # work is sorted by start: the first of each launch
        starts = events.ts[work[here][first]]
        order = np.argsort(events.ts[calls], kind="stable")
        calls, starts = calls[order].astype(np.int32), starts[order]
        begun = np.searchsorted(np.sort(starts), events.ts[calls], "right")
        depth = np.maximum(np.arange(len(calls)) - begun, 0)
        queues.append(Queue(int(streams[0, i]), int(streams[1, i]), calls, starts, depth))
    return tuple(queues)


def queue_at_launch(trace: Trace) -> Int64:
    """For every launch of every stream: how many before it were waiting. Empty without launches."""
    depths = [queue.depth for queue in trace.derived(launch_queues)]
    return np.concatenate(depths) if depths else np.empty(0, np.int64)


def adapted_kernels(trace: Trace) -> Int32:
    """Kernels with an occupancy query between their launch and the launch before it on the same thread."""
    events, links = trace.events, trace.links
    asked = events.of(OCCUPANCY_QUERY)
    if not len(asked) or not len(links.launches):
        return np.zeros(0, np.int32)
    rows = np.concatenate((asked, links.launches))
    query = np.repeat([True, False], [len(asked), len(links.launches)])
    order = np.lexsort((events.ts[rows], events.lane[rows]))
    rows, query = rows[order], query[order]
    follows = query[:-1] & ~query[1:] & (events.lane[rows[:-1]] == events.lane[rows[1:]])
    work = links.put_by(np.sort(rows[1:][follows]))
    found: Int32 = work[events.kind[work] == Kind.KERNEL]
    return found
