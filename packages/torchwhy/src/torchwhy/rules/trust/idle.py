"""One gap that outweighs all others."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Evidence, Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.host.launch_gaps import time_of
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.gaps import device_window, giant_gap
from torchwhy.trace.derived.host_activity import host_during
from torchwhy.trace.derived.idle import work_queued
from torchwhy.trace.derived.launches import graph_captures
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import duration_ns, percent

__all__ = ["one_giant_gap"]


@rule("A13", "one-giant-gap", source="traces whose set-up lies in the window", needs=("idle",), frees="nothing")
def one_giant_gap(trace: Trace, *, share: float = 0.2) -> Iterator[Finding]:
    """One gap makes up most of the device's idle time.

    Sees: a stretch without device work that is longer than all other gaps together and takes 20% of the window or
    more. A captured CUDA graph is graph-capture's.

    Costs: any average over the window is an average over this gap: "the device is idle most of the time" is true and
    says nothing about the rest, for which the title gives the idle share.

    Fix: if it is set-up, loading or compilation, start recording after it; if it comes back, look at what the host
    does. What passes after the launch has returned isn't the host's: see stalled-queue.

    Known problems: what the host did meanwhile is evidence, and no proof of the cause.
    """
    gap = trace.derived(giant_gap)
    window = device_window(trace)
    if gap is None:
        return
    when = Intervals.union([gap[0]], [gap[1]]).clip(window.start, window.end)
    part = window.share(when)
    if not len(when) or part < share or (trace.derived(graph_captures) & when).total * 2 > when.total:
        return
    start = int(when.starts[0])
    rest = window.end - window.start - when.total
    busy = trace.gpu.busy.clip(window.start, window.end).total
    place = (
        " before the first work"
        if start == window.start
        else " after the last work"
        if int(when.ends[-1]) == window.end
        else ""
    )
    elsewhere = f"; {percent(1 - busy / rest)} of the rest is idle" if rest > 0 else ""
    queued = trace.derived(work_queued) & when
    host = when - queued
    rows, times = (
        host_during(trace, int(host.starts[0]), int(host.ends[0])) if len(host) else (np.empty(0, np.int32), None)
    )
    cause = _cause(host, queued, recorded=len(rows) > 0)
    yield Finding(
        title=f"One gap of {duration_ns(when.total)}{place} takes {percent(part)} of "
        f"{time_of(trace, window)}{elsewhere}",
        severity="info",
        confidence="high",
        stretches=when,
        window=window,
        evidence=evidence(trace, rows, times=times)
        or (Evidence("nothing recorded on the host", 1, when.total / 1000, start / 1000),),
        cause=cause,
        fix=(
            "Find out whether this comes back. If not, begin the recording later (schedule(wait=..., warmup=...)) "
            "and judge the rest by itself."
        ),
    )


def _cause(host: Intervals, queued: Intervals, *, recorded: bool) -> str:
    """Whose gap it is: the host's until the next launch returned, and the device's from then on.

    Args:
        host, queued: those two parts of it.
        recorded: whether anything was recorded on the host meanwhile.
    """
    device = (
        f"The next kernel was launched {duration_ns(queued.total)} before it began: the device waited for something "
        "else, probably another stream"
    )
    if queued.total * 2 > host.total + queued.total:
        return f"{device}."
    more = f" {device}." if len(queued) else ""
    did = "The evidence shows what it did." if recorded else "The file does not show what it did."
    return (
        "The host did not launch anything meanwhile: set-up, loading, a first call and compilation look like this. "
        f"{did}{more}"
    )
