"""What "idle" means in this trace: one gap that outweighs all others, and windows that disagree."""

from __future__ import annotations

from collections.abc import Iterator

from torchfx.profiler.rules.evidence import evidence, severity_of
from torchfx.profiler.rules.finding import Evidence, Finding
from torchfx.profiler.rules.rule import rule
from torchfx.profiler.trace.derived.gaps import device_window, giant_gap
from torchfx.profiler.trace.derived.occupation import host_during
from torchfx.profiler.trace.model.trace import Trace
from torchfx.profiler.wording import duration_ns, percent

__all__ = ["idle_definition", "one_giant_gap"]


@rule(
    "A13",
    "one-giant-gap",
    source="traces whose set-up lies in the window",
    needs=("idle",),
)
def one_giant_gap(trace: Trace, *, share: float = 0.2) -> Iterator[Finding]:
    """One gap makes up most of the device's idle time.

    Sees: a stretch without device work that is longer than all other gaps together and takes 20% of the window or
    more.

    Costs: any average over the window is an average over this gap: "the device is idle most of the time" is true and
    says nothing about the rest, for which the title gives the idle share.

    Fix: if it is set-up, loading or compilation, start recording after it; if it comes back, look at what the host
    does.
    """
    gap = trace.derived(giant_gap)
    window = device_window(trace)
    if gap is None or (gap[1] - gap[0]) < share * (window.end - window.start):
        return
    start, end = max(gap[0], window.start), min(gap[1], window.end)
    length = end - start
    if length <= 0 or length < share * (window.end - window.start):  # it lies outside, where times are broken
        return
    part = length / (window.end - window.start)
    rest = window.end - window.start - length
    busy = trace.gpu.busy.clip(window.start, window.end).total
    leading = start == window.start
    place = "before the first work" if leading else "in the middle"
    elsewhere = f"; without it {percent(1 - busy / rest)} is idle" if rest > 0 else ""
    last = trace.steps_found[-1] if trace.steps_found else None
    rows, times = host_during(trace, start, end)
    within = last is not None and len(trace.steps_found) >= 3 and start >= trace.steps_found[0].end
    yield Finding(
        title=f"One gap of {duration_ns(length)} {place} is {percent(part)} of the window{elsewhere}",
        severity=severity_of(part) if within else "info",
        confidence="high",
        time_us=length / 1000,
        window=window,
        evidence=evidence(trace, rows, times=times)
        or (Evidence("nothing recorded on the host", 1, length / 1000, start / 1000),),
        cause=(
            "The host did something else once: set-up, loading, a first call, compilation. "
            "What it did meanwhile stands in the evidence; that is not proof of the cause."
        ),
        fix=(
            "Find out whether this comes back. If not, begin the recording later (schedule(wait=..., warmup=...)) "
            "and judge the rest by itself."
        ),
    )


@rule(
    "A14",
    "idle-definition",
    source="two usual definitions of idle time",
    needs=("idle",),
)
def idle_definition(trace: Trace, *, points: float = 10.0) -> Iterator[Finding]:
    """Idle time depends on the window by more than 10 points.

    Sees: the share of idle time within the steps, and that between the first and the last work of the device, which
    differ by more than 10 percentage points.

    Costs: tools print one or the other. The steps' is the user's time; the device's span leaves out what the host does
    before the first and after the last kernel.

    Fix: quote the larger one, and look at what the host does before its first launch and after its last.
    """
    window = trace.window
    span = trace.gpu.span_ns
    length = window.end - window.start
    if not trace.steps_found or not length or not span:
        return
    in_span = 1 - trace.gpu.busy.total / span
    in_steps = 1 - trace.gpu.busy.clip(window.start, window.end).total / length
    if abs(in_steps - in_span) * 100 <= points:
        return
    first, last = trace.gpu.span
    yield Finding(
        title=f"Idle is {percent(in_steps)} of the steps, but {percent(in_span)} of the time from first to last "
        "device work",
        severity="info",
        confidence="high",
        time_us=max(0, first - window.start + window.end - last) / 1000
        if first >= window.start and last <= window.end
        else 0.0,
        window=window,
        evidence=(
            Evidence(window.name, 1, length / 1000, window.start / 1000, note="the steps"),
            Evidence("first to last device work", 1, span / 1000, first / 1000, note="the device's span"),
        ),
        cause="The host works before the first launch or after the last one of the window.",
        fix="Read idle time within the steps; it is what the program's user waits for.",
        linked=True,
    )
