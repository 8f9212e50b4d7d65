"""What "idle" means in this trace: one gap that outweighs all others, and windows that disagree."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Evidence, Finding, severity_of
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.gaps import device_window, giant_gap
from torchwhy.trace.derived.host_activity import host_during
from torchwhy.trace.derived.idle import work_queued
from torchwhy.trace.derived.launches import graph_captures
from torchwhy.trace.model.intervals import Intervals, Window
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import duration_ns, percent

__all__ = ["idle_definition", "one_giant_gap"]


@rule("A13", "one-giant-gap", source="traces whose set-up lies in the window", needs=("idle",))
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
    place = "before the first work" if start == window.start else "in the middle"
    elsewhere = f"; without it {percent(1 - busy / rest)} is idle" if rest > 0 else ""
    last = trace.steps_found[-1] if trace.steps_found else None
    within = last is not None and len(trace.steps_found) >= 3 and start >= trace.steps_found[0].end
    queued = trace.derived(work_queued) & when
    host = when - queued
    rows, times = (
        host_during(trace, int(host.starts[0]), int(host.ends[0])) if len(host) else (np.empty(0, np.int32), None)
    )
    cause = _cause(host, queued)
    yield Finding(
        title=f"One gap of {duration_ns(when.total)} {place} is {percent(part)} of the window{elsewhere}",
        severity=severity_of(part) if within else "info",
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


def _cause(host: Intervals, queued: Intervals) -> str:
    """Whose gap it is: the host's until the next launch returned, and the device's from then on."""
    device = (
        f"{duration_ns(queued.total)} pass between the return of the next launch and the start of its work: the device "
        "still runs what was queued before the recording, or waits for something else"
    )
    if queued.total * 2 > host.total + queued.total:
        return f"{device}. The host's part is {duration_ns(host.total)}."
    more = f" Then {device}." if len(queued) else ""
    return (
        "The host did something else once: set-up, loading, a first call, compilation. The evidence shows what it did "
        f"meanwhile, which does not prove the cause.{more}"
    )


@rule("A14", "idle-definition", source="two usual definitions of idle time", needs=("idle",))
def idle_definition(trace: Trace, *, points: float = 10.0) -> Iterator[Finding]:
    """Idle time depends on the window by more than 10 points.

    Sees: the share of idle time within the steps, and that between the first and the last work of the device, which
    differ by more than 10 percentage points.

    Costs: tools print one or the other. The steps' is the user's time; the device's span leaves out what the host does
    before the first and after the last kernel.

    Fix: quote the larger one, and look at what the host does before its first launch and after its last.

    Known problems: work from before the recording lies outside of the device's span where its kernels weren't recorded.
    """
    window = trace.window
    span = Window("first to last device work", *trace.gpu.span)
    if not trace.steps_found or not window.us or not span.us:
        return
    in_span = 1 - span.share(trace.gpu.busy)
    in_steps = 1 - window.share(trace.gpu.busy.clip(window.start, window.end))
    if abs(in_steps - in_span) * 100 <= points:
        return
    first, last = trace.gpu.span
    leading = Intervals.union([window.start], [first]) & trace.derived(work_queued)
    yield Finding(
        title=f"The device is idle for {percent(in_steps)} of the steps, but for {percent(in_span)} of the time from "
        "its first to its last work",
        severity="info",
        confidence="high",
        time_us=max(0, first - window.start + window.end - last) / 1000
        if first >= window.start and last <= window.end
        else 0.0,
        stretches=Intervals.union([window.start, last], [first, window.end]),
        window=window,
        evidence=(
            Evidence(window.name, 1, window.us, window.start / 1000, note="the steps"),
            Evidence(span.name, 1, span.us, first / 1000, note="the device's span"),
        ),
        cause="The host works before the first launch or after the last one of the window."
        if leading.total * 2 <= first - window.start
        else f"The first work was launched in time, and begins {duration_ns(leading.total)} after its launch returned.",
        fix="Read idle time within the steps; it is what the program's user waits for.",
        linked=True,
    )
