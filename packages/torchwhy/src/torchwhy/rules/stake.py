"""The time at stake: what the fix of a finding can save at most.

Less work on the host saves no more than the device's idle time that the host causes; less work on the device saves no
more than the time for which the host waits for it; a copy or an exchange that runs under a kernel costs nothing. All of
that follows from a replay of the window without the time that the fix removes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from torchwhy.errors import ArgumentError
from torchwhy.trace.derived.gaps import giant_gap
from torchwhy.trace.derived.idle import shown_from
from torchwhy.trace.derived.recorded import recorded
from torchwhy.trace.derived.replay import replay
from torchwhy.trace.model.intervals import Intervals

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchwhy.trace.model.trace import Trace

__all__ = ["FREES", "most_saved", "ordinary_time"]


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
    """Return the length of the window, nanoseconds, without one giant gap that these stretches don't lie in.

    A beginning in which the device's work was not recorded is such a gap. No gap is giant next to
    stretches that last as long.
    """
    whole = trace.window.end - trace.window.start
    gap = trace.derived(giant_gap)
    shown = trace.derived(shown_from)
    if gap is None and shown > trace.window.start:
        gap = trace.window.start, shown
    if gap is None or 2 * when.clip(*gap).total > when.total or when.total >= gap[1] - gap[0]:
        return whole
    return whole - (gap[1] - gap[0])


def _nothing(trace: Trace, when: Intervals, part: float) -> float:
    return 0.0


def _all(trace: Trace, when: Intervals, part: float) -> float:
    return part * when.total


def _host(trace: Trace, when: Intervals, part: float) -> float:
    if trace.derived(recorded).worked:  # a device whose work isn't in the trace may have been busy meanwhile
        return 0.0
    return trace.derived(replay).saved(host=when, host_part=part) if trace.has_gpu else _all(trace, when, part)


def _device(trace: Trace, when: Intervals, part: float) -> float:
    if trace.derived(recorded).worked:  # how long its work takes isn't known
        return 0.0
    return trace.derived(replay).saved(device=when, device_part=part) if trace.has_gpu else _all(trace, when, part)


def _exposed(trace: Trace, when: Intervals, part: float) -> float:
    return _device(trace, when - trace.gpu.compute, part)


FREES: Final[dict[str, Callable[[Trace, Intervals, float], float]]] = {
    "host": _host,
    "device": _device,
    "exposed": _exposed,
    "all": _all,
    "nothing": _nothing,
}
"""The time that a fix removes: work of the host; kernels; copies or exchanges, which cost nothing under a kernel; both
sides' time, such as a whole step, or what the rule itself has replayed; or nothing."""
