"""The time at stake: what the fix of a finding can save at most.

Time that is removed from a program shortens it only where something else doesn't take as long anyway. Less work on the
host saves no more than the device's idle time that the host causes, and a wait of the host that is left out no more
than the idle time up to the next one; less work on the device saves no more than the time for which the host waits for
it; a copy or an exchange that runs under a kernel costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from torchwhy.errors import ArgumentError
from torchwhy.trace.derived.gaps import Cause, giant_gap, idle_gaps
from torchwhy.trace.derived.host_activity import batch_waits
from torchwhy.trace.derived.idle import closing_wait, idle_time
from torchwhy.trace.derived.waits import device_waits, finishing_waits
from torchwhy.trace.file.columns import Int64
from torchwhy.trace.meaning.annotations import LOADED_IN_PROCESS
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.model.intervals import Intervals

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchwhy.trace.model.trace import Trace

__all__ = ["FREES", "Limits", "device_limits", "host_limits", "most_saved", "ordinary_time"]

KNOWN: Final = 0.5
"""With fewer launches recorded than this part, nothing shows where the host waits for the device."""


@dataclass(frozen=True)
class Limits:
    """Parts of the window, one after the other, and the most that a fix can save in each.

    Attributes:
        starts, ends: nanoseconds.
        most: nanoseconds.
    """

    starts: Int64
    ends: Int64
    most: Int64

    def saved(self, when: Intervals, part: float) -> float:
        """Return the most that is saved, nanoseconds, if a part (0 to 1) of these stretches of time is removed."""
        return float(np.minimum(part * when.overlap(self.starts, self.ends), self.most).sum())


def most_saved(trace: Trace, frees: str, when: Intervals, part: float = 1.0) -> float:
    """Return the most that removing some time can save of the window, nanoseconds.

    Args:
        trace: the program.
        frees: what kind of time it is, one of `FREES`.
        when: the time; what lies outside of the window doesn't count.
        part: the fraction of it that can be removed.

    Raises:
        ArgumentError: `frees` is not one of `FREES`.
    """
    if frees not in FREES:
        raise ArgumentError(f"frees must be one of {', '.join(FREES)}, got {frees!r}")
    inside = when.clip(trace.window.start, trace.window.end)
    return FREES[frees](trace, inside, part)


def ordinary_time(trace: Trace, when: Intervals) -> int:
    """Return the length of the window, nanoseconds, without one giant gap that these stretches don't lie in."""
    whole = trace.window.end - trace.window.start
    gap = trace.derived(giant_gap)
    if gap is None or 2 * when.clip(*gap).total > when.total:
        return whole
    return whole - (gap[1] - gap[0])


def host_limits(trace: Trace) -> Limits:
    """Less work on the host: from one wait for the device to the next no more than the device's idle time.

    A wait that ends sets the host back to the device's time. What was saved before it is lost, unless the device was
    idle for as long.
    """
    return _host_limits(trace, trace.derived(device_waits).ends, trace.derived(idle_time))


def _host_limits(trace: Trace, waits: Int64, idle: Intervals) -> Limits:
    starts, ends = _between(trace, waits)
    return Limits(starts, ends, idle.overlap(starts, ends))


def device_limits(trace: Trace) -> Limits:
    """Less work on a device: no more than the host's next wait for it, and nothing if it runs dry before that.

    A wait for room in a queue leaves work in it, so that what isn't saved there may be saved by the next one. After the
    host's last call the whole program waits for the device.
    """
    gaps, links, waits = trace.derived(idle_gaps), trace.links, trace.derived(device_waits)
    late = gaps.starts[gaps.of(Cause.HOST, Cause.CALL)]
    starts, ends = _between(trace, np.concatenate((trace.derived(finishing_waits).ends, late)))
    if np.count_nonzero(links.launch >= 0) < KNOWN * len(links.work):
        return Limits(starts, ends, ends - starts)
    waited = (waits & trace.gpu.busy) | _after_the_host(trace)
    return Limits(starts, ends, waited.overlap(starts, ends))


def _between(trace: Trace, moments: Int64) -> tuple[Int64, Int64]:
    """The window cut at some moments: starts and ends."""
    start, end = trace.window.start, trace.window.end
    inner = np.unique(moments[(moments > start) & (moments < end)])
    return np.concatenate(([start], inner)).astype(np.int64), np.concatenate((inner, [end])).astype(np.int64)


def _after_the_host(trace: Trace) -> Intervals:
    """From the end of the host's last call to the end of the window; the profiler's own wait doesn't count."""
    events = trace.events
    rows = events.rows(Kind.OPERATOR, Kind.RUNTIME)
    rows = rows[(rows != trace.derived(closing_wait)) & (events.ts[rows] < trace.window.end)]
    last = int(events.end[rows].max()) if len(rows) else trace.window.start
    return Intervals.union([last], [trace.window.end])


def _nothing(trace: Trace, when: Intervals, part: float) -> float:
    return 0.0


def _all(trace: Trace, when: Intervals, part: float) -> float:
    return part * when.total


def _host(trace: Trace, when: Intervals, part: float) -> float:
    if not trace.has_gpu:
        return _all(trace, when, part)
    waits = trace.derived(device_waits)
    removed = when.overlap(waits.starts, waits.ends) == waits.lengths
    if part < 1 or not removed.any():
        return trace.derived(host_limits).saved(when, part)
    # The host runs on where it waited, up to the next wait that stays; idle time before the first is not won back, nor
    # does a batch come sooner.
    batches = trace.derived(batch_waits) - trace.events.times_of(trace.events.of(LOADED_IN_PROCESS))
    idle = trace.derived(idle_time) - (batches - when)
    return _host_limits(trace, np.append(waits.ends[~removed], when.starts[0]), idle).saved(when, part)


def _device(trace: Trace, when: Intervals, part: float) -> float:
    return trace.derived(device_limits).saved(when, part) if trace.has_gpu else _all(trace, when, part)


def _exposed(trace: Trace, when: Intervals, part: float) -> float:
    return _device(trace, when - trace.gpu.compute, part)


FREES: Final[dict[str, Callable[[Trace, Intervals, float], float]]] = {
    "host": _host,
    "device": _device,
    "exposed": _exposed,
    "all": _all,
    "nothing": _nothing,
}
"""What a fix removes: work of the host; kernels; copies or exchanges, which cost nothing under a kernel; both sides'
time, such as a whole step; or nothing."""
