"""Waits of the host for a device, and what they leave idle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from torchwhy.trace.derived.idle import closing_wait, idle_time, work_queued
from torchwhy.trace.file.columns import Int32, Int64
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.runtime import DEVICE_FREE, WAIT_FOR_DEVICE
from torchwhy.trace.model.intervals import Intervals

if TYPE_CHECKING:
    from torchwhy.trace.model.trace import Trace

__all__ = ["Waits", "device_waits", "finishing_waits", "host_waits"]

BLOCKED_NS: Final = 50_000
"""A launch that takes longer waits for room in the queue of its stream."""


@dataclass(frozen=True)
class Waits:
    """Calls in which the host waited for a device; the profiler's own wait at its end is not among them.

    Attributes:
        rows: the calls, by start.
        starts, ends: the stretch of idle time each is answerable for, empty where start equals end. Where the device
            ran dry during the call, that is the time until it had work again, though no more than the call's own
            duration: without the wait the host would have been that much earlier. Where the device was idle all along,
            it is the call itself. Once the next work has been launched the host is answerable no more.
    """

    rows: Int32
    starts: Int64
    ends: Int64

    @property
    def idle(self) -> Int64:
        """The length of each stretch, nanoseconds; stretches of several calls may overlap."""
        return self.ends - self.starts

    @property
    def stalls(self) -> Intervals:
        """All stretches together."""
        return Intervals.union(self.starts, self.ends)


def host_waits(trace: Trace) -> Waits:
    """Find every wait for a device in the window by the main thread and by threads that launch kernels.

    Others (one that pins batches, one that watches collectives) delay no other thread while they wait.
    """
    events = trace.events
    rows = _waiting(trace)
    start, end = events.ts[rows], events.end[rows]
    rows = rows[(start < trace.window.end) & (end > trace.window.start)]
    start, end = events.ts[rows], events.end[rows]
    idle = trace.derived(idle_time) - trace.derived(work_queued)
    if not len(rows) or not len(idle):
        return Waits(rows, start, start.copy())
    # The gap the call ends in; a call may end a moment before the device is seen to be done.
    gap = np.minimum(np.searchsorted(idle.ends, end, "right"), len(idle) - 1)
    dry, refilled = idle.starts[gap], idle.ends[gap]
    inside = (dry <= end) & (end <= refilled)
    last_work = int(events.ts[trace.links.work[-1]]) if trace.has_gpu else 0
    emptied = inside & (start < dry) & (refilled <= last_work)  # at the end there was nothing left to launch
    first = np.where(inside, np.maximum(dry, start), start)
    last = np.where(emptied, np.minimum(refilled, dry + (end - start)), np.minimum(end, refilled))
    last = np.where(inside, np.maximum(last, first), first)
    return Waits(rows, first, last)


def device_waits(trace: Trace) -> Intervals:
    """The calls in which the host waited for a device to finish, to free its memory, or for room in a stream's queue.

    Each from begin to end: the device may change from one kernel to the next in between. A call that found the device
    idle waited for nothing and is left out.
    """
    events, launches = trace.events, trace.links.launches
    blocked = launches[(events.dur[launches] >= BLOCKED_NS) & (trace.links.work_count[launches] > 0)]
    return trace.derived(finishing_waits) | _while_busy(trace, blocked, 0.5)


def finishing_waits(trace: Trace) -> Intervals:
    """Those of `device_waits` that end when the device has finished: what waited for room in a queue is left out."""
    events, freed = trace.events, trace.events.of(DEVICE_FREE)
    # The driver gives memory back when the device has finished.
    return _while_busy(trace, np.concatenate((_waiting(trace), freed[events.dur[freed] >= BLOCKED_NS])))


def _while_busy(trace: Trace, rows: Int32, part: float = 0.0) -> Intervals:
    """The times of those calls during which a device worked, for more than a part of the call.

    A launch that is slow itself ends when its work has begun; one that waits for room has a device at work all along.
    """
    events = trace.events
    busy = trace.gpu.busy.overlap(events.ts[rows], events.end[rows]) > part * events.dur[rows]
    found: Intervals = events.times_of(rows[busy])
    return found


def _waiting(trace: Trace) -> Int32:
    """Calls that wait for a device on threads that others depend on, by start; the profiler's own is left out."""
    events = trace.events
    rows = np.union1d(events.of(WAIT_FOR_DEVICE), _copies_waited_for(trace)).astype(np.int32)
    rows = rows[np.argsort(events.ts[rows], kind="stable")]
    launching = np.append(np.unique(events.lane[trace.links.launches]), trace.main_lane)
    found: Int32 = rows[(rows != trace.derived(closing_wait)) & np.isin(events.lane[rows], launching)]
    return found


def _copies_waited_for(trace: Trace) -> Int32:
    """Launches of copies that did not return before the copy was done, whatever they are called."""
    events, links = trace.events, trace.links
    chosen = (links.launch >= 0) & (events.kind[links.work] == Kind.MEMCPY)
    work, launch = links.work[chosen], links.launch[chosen]
    found: Int32 = launch[events.end[launch] >= events.end[work]]
    return found
