"""When the devices had no work, and what of that time the profiler took for itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from torchwhy.trace.file.columns import Int32, Int64
from torchwhy.trace.meaning.frames import PROFILER
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.overhead import CODE_LOADING
from torchwhy.trace.meaning.runtime import DEVICE_SYNCHRONIZE, NO_WORK
from torchwhy.trace.model.intervals import Intervals

if TYPE_CHECKING:
    from torchwhy.trace.model.trace import Trace

__all__ = [
    "START_NS",
    "SWITCH_NS",
    "at_stake",
    "closing_wait",
    "earlier_work",
    "idle_time",
    "next_launch",
    "profiler_overhead",
    "shown_from",
    "work_queued",
]

SWITCH_NS: Final = 5_000
"""From one queued kernel to the next a device takes a few microseconds at most; longer needs a reason."""

START_NS: Final = 25_000
"""From a launch's return to its work's start an idle device takes 1 to 5 us, an MI300X up to 20; longer needs a
reason."""

UNSHOWN_NS: Final = 1_000_000
"""If the first work of a stream begins more than this after its launch, the file lacks earlier work of the stream."""

HARDLY: Final = 0.01
"""A device that worked for less of the window than this had hardly begun."""


def shown_from(trace: Trace) -> int:
    """The moment from which the devices' work was recorded, nanoseconds: the start of the window, or later.

    A recording that begins while work is queued, or a file cut out of one, lacks the work that was under way. The first
    recorded work of a stream then begins long after its launch, and nothing before it shows whether a device was idle.
    """
    window, events, links = trace.window, trace.events, trace.links
    idle = Intervals.union([window.start], [window.end]) - trace.gpu.busy
    work, launch = next_launch(trace, idle.ends)
    waited = idle.ends - np.maximum(idle.starts, events.end[launch]) if len(trace) else idle.lengths
    _, first = np.unique(events.lane[links.work], return_index=True)
    hidden = (launch >= 0) & np.isin(work, links.work[first]) & (waited > UNSHOWN_NS) & (2 * waited > idle.lengths)
    busy = idle.starts - window.start - (np.cumsum(idle.lengths) - idle.lengths)
    early = busy <= HARDLY * (window.end - window.start)
    return int(idle.ends[hidden & early].max(initial=window.start))


def earlier_work(trace: Trace) -> Intervals:
    """When all that the devices did was launched before the recording began."""
    work, early = trace.links.work, trace.links.before_recording
    return trace.events.times_of(early) - trace.events.times_of(work[~np.isin(work, early)])


def idle_time(trace: Trace) -> Intervals:
    """When, within the window, no device had work, as the file shows, and the profiler itself was not the reason."""
    return _without_work(trace) - trace.derived(profiler_overhead)


def _without_work(trace: Trace) -> Intervals:
    return Intervals.union([trace.derived(shown_from)], [trace.window.end]) - trace.gpu.busy


def at_stake(trace: Trace, host: Intervals) -> Intervals:
    """The part of some time on the host that counts: in the window and, with a device, while that has no work."""
    return host & trace.derived(idle_time) if trace.has_gpu else host.clip(trace.window.start, trace.window.end)


def next_launch(trace: Trace, ends: Int64) -> tuple[Int32, Int32]:
    """The work that begins at each of these times and the call that launched it, rows; -1 if missing."""
    events, links = trace.events, trace.links
    if not len(links.work):
        none = np.full(len(ends), -1, np.int32)
        return none, none
    i = np.minimum(np.searchsorted(events.ts[links.work], ends), len(links.work) - 1)
    followed = events.ts[links.work[i]] == ends
    work = np.where(followed, links.work[i], -1).astype(np.int32)
    return work, np.where(followed, links.launch[i], -1).astype(np.int32)


def work_queued(trace: Trace) -> Intervals:
    """When, within the window, no device had work although the call that launched its next work had returned.

    The host has done its part by then. A device takes a moment to begin, `SWITCH_NS` after other work and `START_NS`
    where it had none; shorter stretches are left out.
    """
    idle = _without_work(trace)
    _, launch = next_launch(trace, idle.ends)
    returned = trace.events.end[launch] if len(trace) else idle.starts
    starts = np.maximum(idle.starts, returned)
    least = np.where(returned <= idle.starts, SWITCH_NS, START_NS)
    late = (launch >= 0) & (idle.ends - starts > least)
    return Intervals(starts[late], idle.ends[late])


def profiler_overhead(trace: Trace) -> Intervals:
    """When the profiler set up and emptied its buffers, and when it waited at its end with no device at work.

    Loading a kernel's code at its first use is the program's, though the driver reports it as overhead too. While the
    profiler waits for work that is queued, a device that stands still does so for the program's reasons.
    """
    events = trace.events
    rows = events.rows(Kind.OVERHEAD)
    rows = rows[~events.are(CODE_LOADING, rows)]
    starts, ends = events.ts[rows], events.end[rows]
    last = trace.derived(closing_wait)
    if last >= 0:
        start, end = int(events.ts[last]), int(events.end[last])
        starts, ends = np.append(starts, max(start, min(trace.gpu.span[1], end))), np.append(ends, end)
    return Intervals.union(starts, ends)


def closing_wait(trace: Trace) -> int:
    """The row of the wait for the device that the profiler made when it was stopped, or -1.

    Python frames show whose it is. Without them it is the last one, after the last step, with no operator or annotation
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
