"""The kernels of the window with their names read and their operators, for several rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from torchwhy.finding import Evidence, Finding
from torchwhy.rules.evidence import evidence
from torchwhy.trace.derived.kernels import in_window, kernel_names
from torchwhy.trace.derived.ownership import operators_of_work
from torchwhy.trace.derived.replay import replay
from torchwhy.trace.meaning.kernels import decode
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace

__all__ = ["about_kernels", "caveat", "matters", "shown", "with_calls"]


def matters(trace: Trace, time_us: float, share: float = 0.01) -> bool:
    """Whether device time is enough of the window to matter: an almost idle device is excluded."""
    return time_us > 0 and time_us >= share * trace.window.us


def caveat(trace: Trace) -> str:
    """Say so where the device waits for launches after half of its work: faster kernels then change little."""
    return "" if trace.derived(_queued) else " But the device waits for the host: reduce that wait first."


def about_kernels(
    trace: Trace,
    rows: npt.ArrayLike,
    *,
    title: str,
    cause: str,
    fix: str,
    confidence: str = "high",
    linked: bool = True,
    part: float = 1.0,
    calls: float = 0.0,
    most: str = "high",
    least: float = 0.01,
) -> Iterator[Finding]:
    """The finding that kernels could be shorter, unless their time is too little of the window to matter.

    Args:
        trace, rows: the kernels.
        title, cause, fix, confidence, linked, most: the finding's; the cause continues with `caveat`.
        part: the fraction of their time that the fix removes.
        calls: the fraction of the operators that launch them that it removes. A rule that gives it frees "all": both
            the host's and the device's time.
        least: the share of the window that matters.
    """
    when = trace.when(rows)
    time_us = part * when.total / 1000
    if matters(trace, time_us, least):
        if calls:
            time_us, when = with_calls(trace, rows, when, part, calls)
        yield Finding(
            title=title,
            most=most,
            confidence=confidence,
            time_us=time_us,
            stretches=when,
            window=trace.window,
            evidence=shown(trace, rows),
            cause=cause + caveat(trace),
            fix=fix,
            linked=linked,
        )


def with_calls(
    trace: Trace, rows: npt.ArrayLike, when: Intervals, part: float, calls: float
) -> tuple[float, Intervals]:
    """What is saved without parts of kernels' time and of the operators that launch them, microseconds; and when.

    Args:
        trace, rows, part, calls: see `about_kernels`.
        when: the kernels' time.
    """
    operators = trace.derived(operators_of_work)[np.isin(trace.links.work, np.asarray(rows, np.int32))]
    host = trace.when(np.unique(operators[operators >= 0]))
    saved = trace.derived(replay).saved(host=host, host_part=calls, device=when, device_part=part)
    return saved / 1000, when | host


def shown(trace: Trace, rows: npt.ArrayLike, *, limit: int = 5, note: str = "") -> tuple[Evidence, ...]:
    """Evidence for kernels, with what their names say as the note."""
    found = evidence(trace, rows, limit=limit, note=note)
    if note:
        return found
    chosen = np.asarray(rows, np.int32)
    kernels = chosen[trace.events.kind[chosen] == Kind.KERNEL]
    known = zip(map(trace.name, kernels.tolist()), trace.derived(kernel_names).of(kernels), strict=True)
    described = {text: name.description for text, name in known}
    return tuple(replace(one, note=described.get(one.name) or decode(one.name).description) for one in found)


def _queued(trace: Trace) -> bool:
    """Whether the device sets the pace where it works: for half of its time or more the next work waits already.

    The busy share of the whole window is not enough: a step may prepare its data on the host first and then keep the
    device busy without a gap.
    """
    events, links = trace.events, trace.links
    at = np.flatnonzero(in_window(trace, links.work))
    if len(at) < 2:
        return True
    work, launch = links.work[at], links.launch[at]
    end = np.maximum.accumulate(events.end[work])[:-1]
    # Work whose launch isn't in the trace was launched before it began.
    waits = (launch[1:] < 0) | (events.ts[np.maximum(launch[1:], 0)] < end)
    spent = events.dur[work][:-1]
    return int(spent[waits].sum()) * 2 >= int(spent.sum())
