"""The times a device had nothing to do, each with the reason that ids and times show."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from torchfx.profiler.trace.derived.idle import profiler_overhead
from torchfx.profiler.trace.derived.waits import host_waits
from torchfx.profiler.trace.file.columns import Int32, Int64
from torchfx.profiler.trace.meaning.kinds import Kind
from torchfx.profiler.trace.model.intervals import Intervals, Window

if TYPE_CHECKING:
    from torchfx.profiler.trace.model.trace import Trace

__all__ = ["SWITCH_NS", "Cause", "Gaps", "device_window", "giant_gap", "idle_gaps"]

SWITCH_NS: Final = 5_000
"""From one queued kernel to the next a device takes a few microseconds at most; longer needs a reason."""


class Cause(IntEnum):
    """Why a device was idle."""

    HOST = 0
    """Nothing was queued: the next launch was issued after the device had run dry."""
    WAIT = 1
    """The same, because the host had waited for the device to finish before it went on."""
    CALL = 2
    """The launching call had begun but took its time: copying from pageable memory, loading a module."""
    DEVICE = 3
    """The next work was queued and didn't begin: it depends on something else."""
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

    Attributes:
        starts, ends: nanoseconds. The first may begin with the window, the last end with it.
        cause: a `Cause` each.
        work: the row of the work that ends it, or -1.
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
    events, work = trace.events, trace.links.work
    window = trace.window
    idle = Intervals.union([window.start], [window.end]) - trace.gpu.busy
    starts, ends = idle.starts, idle.ends
    if not len(work) or not len(idle):
        none = np.empty(0, np.int32)
        return Gaps(starts[:0], ends[:0], np.empty(0, np.uint8), none, none, none)
    begins = events.ts[work]
    i = np.minimum(np.searchsorted(begins, ends), len(work) - 1)
    followed = begins[i] == ends
    last_launch = trace.links.launch[i]
    next_work = np.where(followed, work[i], -1).astype(np.int32)
    launch = np.where(followed, last_launch, -1).astype(np.int32)
    wait = _waits_before(trace, starts, ends)

    called, returned = events.ts[launch], events.end[launch]
    long_ = ends - starts > SWITCH_NS
    late = called >= starts
    cause = np.select(
        [
            _by_profiler(trace, starts, ends, followed),
            ~followed,
            launch < 0,
            late & (wait >= 0),
            late,
            long_ & (returned >= starts) & (returned + SWITCH_NS >= ends),
            long_,
        ],
        [Cause.PROFILER, Cause.END, Cause.UNKNOWN, Cause.WAIT, Cause.HOST, Cause.CALL, Cause.DEVICE],
        Cause.SWITCH,
    ).astype(np.uint8)
    return Gaps(starts, ends, cause, next_work, launch, wait)


def device_window(trace: Trace) -> Window:
    """What shares of the device's time are a part of: the steps, or without any the time from first to last work.

    Without steps the trace's window holds whatever set-up the recording began with.
    """
    if trace.steps_found or not trace.has_gpu:
        return trace.window
    start, end = max(trace.gpu.span[0], trace.window.start), min(trace.gpu.span[1], trace.window.end)
    return Window("first to last work of the device", start, max(start, end))


def giant_gap(trace: Trace) -> tuple[int, int] | None:
    """The one gap that is longer than all others of the window together, or None.

    Where the program announced no steps, what comes before the first and after the last work is no gap.
    """
    gaps = trace.derived(idle_gaps)
    left_out = gaps.of(Cause.PROFILER)
    if not trace.steps_found:
        left_out |= gaps.of(Cause.END) | (gaps.starts == trace.window.start)
    lengths = np.where(left_out, 0, gaps.lengths)
    if not len(lengths) or int(lengths.max()) * 2 <= int(lengths.sum()):
        return None
    i = int(lengths.argmax())
    return int(gaps.starts[i]), int(gaps.ends[i])


def _by_profiler(trace: Trace, starts: Int64, ends: Int64, followed: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Whether the profiler's buffers take most of a gap, or its closing wait most of one that nothing follows."""
    rows = trace.events.rows(Kind.OVERHEAD)
    buffers = Intervals.union(trace.events.ts[rows], trace.events.end[rows])
    share = np.where(followed, buffers.overlap(starts, ends), trace.derived(profiler_overhead).overlap(starts, ends))
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
