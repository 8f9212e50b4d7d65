"""Effects of the profiler on the program that it records."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Evidence, Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.rules.vendor import loading_at_start
from torchwhy.trace.derived.idle import closing_wait
from torchwhy.trace.meaning.kinds import HOST, Kind
from torchwhy.trace.meaning.overhead import BUFFERS, CODE_LOADING
from torchwhy.trace.meaning.runtime import MODULE_LOADING
from torchwhy.trace.model.intervals import Intervals, Window
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import duration_ns, percent

__all__ = ["buffer_request", "closing_sync", "lazy_loading", "profiler_overhead"]


@rule(
    "A10", "profiler-overhead", source="torch.profiler's documentation of with_stack", mutes=("host",), frees="nothing"
)
def profiler_overhead(trace: Trace, *, share: float = 0.5, frames: int = 200) -> Iterator[Finding]:
    """Recording slowed the host down.

    Sees: more than half of the host's events are Python frames; or stacks, shapes and memory were all recorded.

    Costs: each frame and each shape takes time while the program runs, so durations on the host, and the device's idle
    time between launches, are longer than without the profiler. Kernel durations are not affected.

    Fix: for timing, record once more without `with_stack`, `record_shapes` and `profile_memory`, or compare with the
    time a step takes without profiler.

    Known problems: how much slower isn't in the trace; the number of events only hints at it.
    """
    counts = trace.events.count_by_kind
    python, host = int(counts[Kind.PYTHON]), int(counts[list(HOST)].sum())
    everything = {"with_stack", "record_shapes", "profile_memory"} <= trace.info.flags
    if not (python >= frames and python > share * host) and not (everything and host >= frames):
        return
    asked = ", ".join(sorted(trace.info.flags & {"with_stack", "record_shapes", "profile_memory", "with_modules"}))
    kinds = (Kind.PYTHON, Kind.OPERATOR, Kind.RUNTIME, Kind.MEMORY)
    yield Finding(
        title=f"{percent(python / host)} of the host's events are Python frames: recording them lengthens host times"
        if python
        else "Stacks, shapes and memory were recorded: recording them lengthens host times",
        severity="info",
        confidence="medium",
        window=trace.window,
        evidence=tuple(Evidence(f"events: {k.name.lower()}", int(counts[k])) for k in kinds if counts[k]),
        cause=f"Recording costs time on the host{f' ({asked})' if asked else ''}.",
        fix="For durations, record again without with_stack, record_shapes and profile_memory.",
        linked=True,
    )


@rule(
    "A11",
    "buffer-request",
    source="Kineto's overhead events: Activity Buffer Request, Buffer Flush, Resource, ...",
    needs=("gpu",),
    frees="nothing",
)
def buffer_request(trace: Trace, *, share: float = 0.002) -> Iterator[Finding]:
    """The device is idle while the profiler gets its buffers.

    Sees: overhead events such as `Activity Buffer Request` during which no device has work, 0.2% of the window or
    more.

    Costs: nothing without the profiler. That time is left out of idle time.

    Fix: none. A warm-up step in the schedule lets the profiler get its buffers before recording; a gap that comes back
    in a longer recording has another reason.

    Known problems: older versions of Kineto don't record these events; the gap then looks like the program's.
    """
    events, window = trace.events, trace.window
    free = Intervals.union([window.start], [window.end]) - trace.gpu.busy
    rows = events.of(BUFFERS)
    when = free & events.times_of(rows)
    lost = events.covered(rows, when)
    rows, lost, total = rows[lost > 0], lost[lost > 0], when.total
    if not len(rows) or window.share(when) < share:
        return
    first = int(trace.events.ts[trace.links.work[0]])
    early = int(lost[trace.events.ts[rows] < first].sum()) * 2 > total
    what = "before the first work of the device" if early else "between two pieces of work"
    yield Finding(
        title=f"{duration_ns(total)} of apparent idle time are the profiler's own, {what}",
        severity="info",
        confidence="high",
        stretches=when,
        window=trace.window,
        evidence=evidence(trace, rows, times=lost),
        cause="The profiler asked the driver for buffers to record device work.",
        fix="It isn't counted as idle. schedule(wait=1, warmup=1, active=...) moves it out of the window.",
        linked=True,
    )


@rule(
    "A12",
    "closing-sync",
    source="torch.profiler synchronises the device when it stops",
    needs=("gpu",),
    frees="nothing",
)
def closing_sync(trace: Trace, *, share: float = 0.01) -> Iterator[Finding]:
    """The last wait for the device is the profiler's.

    Sees: a device synchronisation at the end, outside of every operator and annotation, of 1% of the window or more.

    Costs: nothing without the profiler, which waits here for all queued work so as to record it. Its length shows how
    far the device was behind the host.

    Fix: none; it isn't counted as the program's, except for gaps in the device's work during it.

    Known problems: without Python stacks a program that calls `torch.cuda.synchronize()` at its end looks the same.
    """
    row = trace.derived(closing_wait)
    if row < 0 or trace.events.dur[row] < share * (trace.window.end - trace.window.start):
        return
    start, end = int(trace.events.ts[row]), int(trace.events.end[row])
    busy = Window("the wait", start, end).share(trace.gpu.busy.clip(start, end))
    state = f"; the device is busy in {percent(busy)} of it" if busy >= 0.5 else ""
    after = int(trace.events.end[trace.links.work].max()) - start
    behind = f" The device was {duration_ns(after)} behind the host." if after > 0 else ""
    yield Finding(
        title=f"The last {trace.name(row)}, {duration_ns(end - start)}, is the profiler's{state}",
        severity="info",
        confidence="medium",
        time_us=float(max(0, min(end, trace.window.end) - max(start, trace.window.start))) / 1000,
        window=trace.window,
        evidence=evidence(trace, [row]),
        cause=f"When it stops, the profiler waits for the device.{behind}",
        fix="Nothing to do: without the profiler the program doesn't wait here.",
    )


@rule(
    "A15",
    "lazy-loading",
    source="Kineto's overhead events: Lazy Function Loading, Runtime Triggered Module Loading",
    frees="host",
)
def lazy_loading(trace: Trace, *, share: float = 0.01) -> Iterator[Finding]:
    """Kernels were loaded while being measured.

    Sees: module loading, by the driver's overhead events or by calls such as cuModuleLoadData, for 1% of the window or
    more.

    Costs: the first use of each kernel loads its code, with or without a profiler. That happens once per process, so it
    is the program's time and no part of a typical step.

    Fix: warm up with the same shapes before recording, or set CUDA_MODULE_LOADING=EAGER to load everything at start.

    Known problems: the driver reports loading next to the call that caused it, not in it, and doesn't name the kernel.
    """
    events = trace.events
    window = trace.window
    rows = np.concatenate((events.of(CODE_LOADING), events.of(MODULE_LOADING)))
    rows = rows[(events.ts[rows] < window.end) & (events.end[rows] > window.start)]
    spent = events.times_of(rows).clip(window.start, window.end)
    part = window.share(spent)
    if not len(rows) or part < share:
        return
    yield Finding(
        title=f"{percent(part)} of the window went to loading kernels' code",
        most="medium",
        confidence="high",
        stretches=spent,
        window=window,
        evidence=evidence(trace, rows),
        cause="The first use of a kernel loads its module.",
        fix=f"Run a few steps with the same shapes before recording; or set {loading_at_start(trace)}.",
        linked=True,
    )
