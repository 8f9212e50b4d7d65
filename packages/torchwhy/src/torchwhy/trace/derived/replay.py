"""The window as a queue: how long it would take without some of the host's time, or some of the device's.

Time that is removed from a program shortens it only where something else doesn't take as long anyway. So the window is
replayed: the host launches work, and waits at some places until the device is done with it; the device takes the work
in its order, and no piece before its launch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from torchwhy.trace.derived.gaps import Cause, idle_gaps
from torchwhy.trace.derived.host_activity import batch_waits
from torchwhy.trace.derived.idle import SWITCH_NS, closing_wait
from torchwhy.trace.derived.launches import lost_launches
from torchwhy.trace.derived.waits import device_waits, finishing_waits
from torchwhy.trace.file.columns import Flags, Int32, Int64
from torchwhy.trace.meaning.annotations import LOADED_IN_PROCESS
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.model.intervals import Intervals

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchwhy.trace.model.trace import Trace

__all__ = ["Replay", "replay"]

KNOWN: Final = 0.5
"""If less than this part of the launches is recorded, nothing shows where the host waits for the device."""

PARTS: Final = 4096
"""The window is replayed in at least this number of parts, each with one launch: that is exact to 0.05% of the
window."""

LATE: Final = 0.02
"""A batch is late where the program would take longer by this part if it waited for each as long."""

WORKERS: Final = 8
"""Loaders usually have at most this number of workers."""

NOTHING: Final = Intervals.union([], [])


@dataclass(frozen=True)
class Replay:
    """The window as the launches and waits of the host and the queue of the device; moments in nanoseconds.

    Attributes:
        start, end: of the window.
        issued, delay, begun: when the host had done its part of each launch, by time; how long an idle device takes
            from then to the beginning of the work; when the work began.
        waits: when the host waited until the device was done.
        done: when the device was done with what each waited for.
        room: when the host waited for room in the queue of a stream.
        late: when the host waited for batches that workers couldn't load in time.
        driven: when the device had nothing to do because the host had launched nothing.
        switches: when the device went from one piece of work to the next, which had been launched.
        host_end: when the host had made its last call; -1 where launches aren't known.
    """

    start: int
    end: int
    issued: Int64
    delay: Int64
    begun: Int64
    waits: Intervals
    done: Int64
    room: Intervals
    late: Intervals
    driven: Intervals
    switches: Intervals
    host_end: int

    def saved(
        self,
        *,
        host: Intervals = NOTHING,
        device: Intervals = NOTHING,
        host_part: float = 1.0,
        device_part: float = 1.0,
        awaited: Intervals = NOTHING,
    ) -> float:
        """Return by how much the window is shorter without some time, nanoseconds.

        Args:
            host, device: what is removed of the host's and of the device's time.
            host_part, device_part: the fraction of each that is removed, 0 to 1. Waits of the host for the device end
                with the device, and vanish only where all of them is removed.
            awaited: work of the device that the host waits for no more.
        """
        gone = _within(self.waits, host) if host_part >= 1 else np.zeros(len(self.waits), np.bool_)
        left_out = self.waits_for(awaited)
        gone |= _within(self.waits, left_out)
        # Workers that load batches all the time don't load them sooner for a host that asks sooner.
        late = self.late.ends[~_within(self.late, host, 0.9)]
        start = int(late[-1]) if len(late) else self.start
        starts, ends = self.waits.starts[~gone], self.waits.ends[~gone]
        room = self.room
        if not len(device):  # a host that comes sooner to a full queue waits longer for room
            starts, ends = np.append(starts, room.starts), np.append(ends, room.ends)
            room = NOTHING
        # A device with less work changes from one piece to the next less often.
        spared = device.overlap(self.switches.starts - 1, self.switches.starts) > 0
        device = device | Intervals(self.switches.starts[spared], self.switches.ends[spared])
        order = np.argsort(ends, kind="stable")
        starts, ends = (times[order][ends[order] > start] for times in (starts, ends))
        starts = np.append(np.maximum(starts, start), max(self.host_end, start))
        ends = np.append(ends, self.end)

        def host_time(moments: Int64) -> Int64:
            """The host's own time up to some moments, without what is removed."""
            removed = host_part * (host - left_out).covered_before(moments) + left_out.covered_before(moments)
            return np.asarray(moments - removed - room.covered_before(moments), np.int64)

        def device_time(moments: Int64) -> Int64:
            return np.asarray(self._device(moments) - device_part * device.covered_before(moments), np.int64)

        before = self._lengths(start, starts, ends, lambda moments: moments, self._device)
        after = self._lengths(start, starts, ends, host_time, device_time)
        return float(np.maximum(before - after, 0).sum())

    def waits_for(self, work: Intervals) -> Intervals:
        """The host's waits that end when this work of the device does."""
        ended = work.overlap(self.done - 1, self.done) > 0
        return Intervals(self.waits.starts[ended], self.waits.ends[ended])

    def _device(self, moments: Int64) -> Int64:
        """How long the device had something to do up to some moments."""
        found: Int64 = moments - self.driven.covered_before(moments)
        return found

    def _lengths(
        self,
        start: int,
        waits: Int64,
        ends: Int64,
        host: Callable[[Int64], Int64],
        device: Callable[[Int64], Int64],
    ) -> Int64:
        """How long each part takes, from the end of a wait to that of the next: as long as the host, or the device.

        After its last launch that found it idle, the device works without a break. So it takes as long as the longest
        of: from the beginning of the part to a launch, and from there all work to the end.
        """
        begins = np.concatenate(([start], ends[:-1]))
        until = device(ends)
        longest: Int64 = until - device(begins)
        if self.host_end < 0:
            return longest
        longest = np.maximum(longest, host(waits) - host(begins))
        at = np.searchsorted(ends, self.issued, "right")
        inside = (self.issued >= start) & (at < len(ends))
        inside &= self.begun < ends[np.minimum(at, len(ends) - 1)]
        at, issued, begun = at[inside], self.issued[inside], self.begun[inside]
        launched = host(issued) - host(begins)[at] + self.delay[inside]
        np.maximum.at(longest, at, launched + until[at] - device(begun))
        return longest


def replay(trace: Trace) -> Replay:
    """Read the queue off a trace; `trace.derived(replay)` does it once."""
    events, links, window = trace.events, trace.links, trace.window
    gaps = trace.derived(idle_gaps)
    chosen = gaps.of(Cause.HOST, Cause.WAIT, Cause.CALL)
    # Where work is missing from the record, the device may have been busy.
    lost = np.sort(events.ts[trace.derived(lost_launches)])
    chosen &= np.searchsorted(lost, gaps.ends) == np.searchsorted(lost, gaps.starts)
    waits = trace.derived(finishing_waits).clip(window.start, window.end)
    # A call that waits for its own work had launched it before the device ran dry.
    chosen &= (_issued(trace, waits, gaps.launch) > gaps.starts) | (gaps.launch < 0)
    driven = Intervals.union(gaps.starts[chosen], gaps.ends[chosen])
    room = (trace.derived(device_waits) - waits).clip(window.start, window.end)
    ends = np.sort(events.end[links.work])
    last = np.searchsorted(ends, waits.ends, "right") - 1
    known = np.count_nonzero(links.launch >= 0) >= KNOWN * len(links.work)
    return Replay(
        window.start,
        window.end,
        *_launches(trace, driven, waits),
        waits,
        ends[np.maximum(last, 0)] if len(ends) else waits.ends,
        room,
        _late_batches(trace),
        driven,
        gaps.intervals(Cause.SWITCH),
        _last_call(trace) if known else -1,
    )


def _within(some: Intervals, others: Intervals, most: float = 1.0) -> Flags:
    """Which stretches others cover, or most of each."""
    found: Flags = others.overlap(some.starts, some.ends) >= most * some.lengths
    return found


def _issued(trace: Trace, waits: Intervals, calls: Int32) -> Int64:
    """When the host had done its part of some launches: those that wait for their work when they begin to wait."""
    events = trace.events
    waiting = waits.overlap(events.ts[calls], events.end[calls]) > 0
    found: Int64 = np.where(waiting, events.ts[calls], events.end[calls])
    return found


def _launches(trace: Trace, driven: Intervals, waits: Intervals) -> tuple[Int64, Int64, Int64]:
    """`issued`, `delay` and `begun` of a replay."""
    events, links, window = trace.events, trace.links, trace.window
    at = np.flatnonzero(links.launch >= 0)
    at = at[(events.ts[links.work[at]] < window.end) & (events.ts[links.launch[at]] >= window.start)]
    call, begun = links.launch[at], events.ts[links.work[at]]
    issued = np.minimum(_issued(trace, waits, call), begun)
    gaps = trace.derived(idle_gaps)
    behind = gaps.of(Cause.DEVICE) & np.isin(gaps.starts, driven.ends)  # an idle device that takes long to begin
    idle = np.isin(begun, np.concatenate((driven.ends, gaps.ends[behind])))
    delay = np.where(idle, begun - issued, np.minimum(begun - issued, SWITCH_NS))
    order = np.argsort(issued, kind="stable")
    issued, delay, begun = issued[order], delay[order], begun[order]
    if not len(issued):
        return issued, delay, begun
    # Of launches near each other the one whose work began soonest is the one that can hold up the device.
    width = max((window.end - window.start) // max(PARTS, 8 * len(waits)), 1)
    part = (issued - window.start) // width * (len(waits) + 1) + np.searchsorted(waits.ends, issued, "right")
    first = np.flatnonzero(np.diff(part, prepend=-1))
    slack = begun - issued - delay
    least = np.repeat(np.minimum.reduceat(slack, first), np.diff(first, append=len(part)))
    kept = np.flatnonzero(slack == least)
    kept = kept[np.diff(part[kept], append=-1) != 0]
    return issued[kept], delay[kept], begun[kept]


def _late_batches(trace: Trace) -> Intervals:
    """When the host waited for batches of workers that load all the time.

    Workers that begin together are done together: of as many batches as there are workers, one may be waited for. A
    wait counts where the device is idle for most of it.
    """
    batches = trace.derived(batch_waits) - trace.events.times_of(trace.events.of(LOADED_IN_PROCESS))
    batches = batches.clip(trace.window.start, trace.window.end)
    idle = trace.derived(idle_gaps).intervals(Cause.HOST).overlap(batches.starts, batches.ends)
    least = LATE * (trace.window.end - trace.window.start) / max(len(batches), 1)
    late = (2 * idle >= batches.lengths) & (batches.lengths >= least)
    count = np.count_nonzero(late)
    if count < 2 or WORKERS * count < len(batches):
        return NOTHING
    return Intervals(batches.starts[late], batches.ends[late])


def _last_call(trace: Trace) -> int:
    """When the host's last call in the window ended; the profiler's own wait doesn't count."""
    events = trace.events
    rows = events.rows(Kind.OPERATOR, Kind.RUNTIME)
    rows = rows[(rows != trace.derived(closing_wait)) & (events.ts[rows] < trace.window.end)]
    last = int(events.end[rows].max()) if len(rows) else trace.window.start
    return min(max(last, trace.window.start), trace.window.end)
