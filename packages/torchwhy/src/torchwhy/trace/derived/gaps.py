"""The times a device had nothing to do, each with the reason that ids and times show."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from torchwhy.trace.derived.idle import next_launch, profiler_overhead, shown_from, work_queued
from torchwhy.trace.derived.waits import host_waits
from torchwhy.trace.file.columns import Int32, Int64
from torchwhy.trace.model.intervals import Intervals, Window

if TYPE_CHECKING:
    from torchwhy.trace.model.trace import Trace

__all__ = ["Cause", "Gaps", "device_window", "giant_gap", "idle_gaps"]


class Cause(IntEnum):
    """Why a device was idle."""

    HOST = 0
    """Nothing was queued: the next launch was issued after the device had run dry."""
    WAIT = 1
    """The same, because the host had waited for the device to finish before it went on."""
    CALL = 2
    """The launching call had begun but took its time: copying from pageable memory, loading a module."""
    DEVICE = 3
    """The call that launched the next work had returned, and the work didn't begin: it waits for something else."""
    SWITCH = 4
    """The same, but too short to have a reason."""
    PROFILER = 5
    """The profiler's own work, its buffers or its closing wait, takes most of it."""
    UNKNOWN = 6
    """The launch of the next work is not in the trace."""
    END = 7
    """No work followed in the window."""


@dataclass(frozen=True)
class Gaps:
    """Stretches of the window during which no device had work, in order of time.

    Where the next work was launched during such a time and began late, two stretches touch: the host's, until the
    launching call returned, and the device's.

    Attributes:
        starts, ends: nanoseconds. The first may begin with the window, the last end with it.
        cause: a `Cause` each.
        work: the row of the work that follows, or -1.
        launch: the row of the call that launched that work, or -1.
        wait: the row of the host's wait for the device that led to it, or -1.
    """

    starts: Int64
    ends: Int64
    cause: npt.NDArray[np.uint8]
    work: Int32
    launch: Int32
    wait: Int32

    @property
    def lengths(self) -> Int64:
        """Nanoseconds each."""
        return self.ends - self.starts

    def of(self, *causes: Cause) -> npt.NDArray[np.bool_]:
        """Which have one of these causes."""
        return np.isin(self.cause, causes)

    def total(self, *causes: Cause) -> int:
        """How long those of some causes are together, nanoseconds; all where none is named."""
        lengths = self.lengths
        return int((lengths[self.of(*causes)] if causes else lengths).sum())

    def intervals(self, *causes: Cause) -> Intervals:
        """Those of some causes as stretches of time."""
        chosen = self.of(*causes)
        return Intervals(self.starts[chosen], self.ends[chosen])

    def __len__(self) -> int:
        return len(self.starts)


def idle_gaps(trace: Trace) -> Gaps:
    """Find and explain the gaps of all devices together within the trace's window."""
    events = trace.events
    window = trace.window
    idle = Intervals.union([trace.derived(shown_from)], [window.end]) - trace.gpu.busy
    if not trace.has_gpu or not len(idle):
        none = np.empty(0, np.int32)
        return Gaps(idle.starts[:0], idle.ends[:0], np.empty(0, np.uint8), none, none, none)
    queued = trace.derived(work_queued)
    starts = np.union1d(idle.starts, queued.starts)
    which = np.searchsorted(idle.starts, starts, "right") - 1
    ends = np.minimum(np.append(starts[1:], window.end), idle.ends[which])
    next_work, launch = (rows[which] for rows in next_launch(trace, idle.ends))
    wait = _waits_before(trace, starts, ends)
    called, returned = events.ts[launch], events.end[launch]
    late = called >= starts
    cause = np.select(
        [
            _by_profiler(trace, starts, ends),
            next_work < 0,
            launch < 0,
            np.isin(starts, queued.starts),
            returned <= starts,
            late & (wait >= 0),
            late,
        ],
        [Cause.PROFILER, Cause.END, Cause.UNKNOWN, Cause.DEVICE, Cause.SWITCH, Cause.WAIT, Cause.HOST],
        Cause.CALL,
    ).astype(np.uint8)
    return Gaps(starts, ends, cause, next_work, launch, np.where(np.isin(starts, queued.starts), -1, wait))


def device_window(trace: Trace) -> Window:
    """Return the window that shares of the device's time refer to.

    It holds the steps, or without steps the time from the first launch to the last work.

    Without steps the trace's window holds whatever set-up the recording began with. A beginning in which the device's
    work wasn't recorded is left out.
    """
    if not trace.has_gpu:
        return trace.window
    if trace.steps_found:
        window, shown = trace.window, trace.derived(shown_from)
        return Window(window.name, shown, window.end) if shown > window.start else window
    first, last = trace.gpu.span
    launch = int(trace.links.launch[0])
    called = min(int(trace.events.ts[launch]), first) if launch >= 0 else first
    called = max(called, trace.derived(shown_from))
    start, end = max(called, trace.window.start), min(last, trace.window.end)
    name = "the first launch to the last work" if launch >= 0 else "first to last work of the device"
    return Window(name, start, max(start, end))


def giant_gap(trace: Trace) -> tuple[int, int] | None:
    """The one gap that is longer than all others of the window together, or None.

    Where the program announced no steps, what comes before the first and after the last work is no gap.
    """
    gaps = trace.derived(idle_gaps)
    left_out = gaps.of(Cause.PROFILER)
    if not trace.steps_found:
        left_out |= gaps.of(Cause.END) | ((gaps.starts == trace.window.start) & gaps.of(Cause.HOST))
    whole = Intervals.union(gaps.starts[~left_out], gaps.ends[~left_out])
    if not len(whole) or int(whole.lengths.max()) * 2 <= whole.total:
        return None
    i = int(whole.lengths.argmax())
    return int(whole.starts[i]), int(whole.ends[i])


def _by_profiler(trace: Trace, starts: Int64, ends: Int64) -> npt.NDArray[np.bool_]:
    """Whether the profiler's buffers or its closing wait take most of a gap."""
    share = trace.derived(profiler_overhead).overlap(starts, ends)
    found: npt.NDArray[np.bool_] = share * 2 > ends - starts
    return found


def _waits_before(trace: Trace, starts: Int64, ends: Int64) -> Int32:
    """For each gap the wait of the host that accounts for half of it or more, or -1."""
    waits = trace.derived(host_waits)
    found = np.full(len(starts), -1, np.int32)
    if not len(waits.rows):
        return found
    gap = np.searchsorted(starts, waits.starts, "right") - 1
    heavy = (gap >= 0) & (waits.idle * 2 >= (ends - starts)[np.maximum(gap, 0)]) & (waits.idle > 0)
    found[gap[heavy]] = waits.rows[heavy]
    return found
