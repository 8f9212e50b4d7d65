"""Who waits for whom: the device for launches, or the host for the device."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.host.launch_gaps import LONGEST_NS, callers, fewer_launches, launching, time_of
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.gaps import Cause
from torchwhy.trace.derived.launches import graph_captures, launch_queues
from torchwhy.trace.derived.phases import training_phases
from torchwhy.trace.derived.steady_state import decides
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import duration_ns, enumeration, often, percent

__all__ = ["compute_bound", "overhead_bound"]


@rule(
    "B1",
    "overhead-bound",
    source="device busy below 50% as in the TensorBoard plugin, idle above 15% as in TraceLens",
    needs=("gpu", "idle", "order"),
    frees="host",
)
def overhead_bound(
    trace: Trace,
    *,
    share: float = 0.25,
    late: float = 0.8,
    queue: float = 1.0,
    kernels: int = 3,
    captured: float = 0.5,
    part: float = 0.1,
) -> Iterator[Finding]:
    """The device waits for launches: the host cannot feed it.

    Sees: gaps of up to 2 ms whose next launch was issued after the device had run dry. They make up 25% of the window
    or more and 80% of all gaps of that length, and launches find at most one other in the queue. Otherwise the same for
    the forward pass, the backward pass or the optimizer alone, if the gaps in it make up 10% of the window. Waiting for
    batches, for the device, for the compiler, captures of graphs, single long gaps (also a shorter one that is half of
    them all and 30% of the window), and a cold first step are left out.

    Costs: each operator costs the host some 5 to 50 us before its kernel starts, however short the kernel. When kernels
    take less, the device's speed doesn't matter.

    Fix: more work per call (larger batches, longer sequences), fewer calls (`torch.compile`, fused optimizers), or
    recorded launches: `torch.compile(mode="reduce-overhead")` or CUDA graphs.

    Known problems: recording itself costs the host some microseconds per operator, so a program near the limit may
    keep its device busy when unrecorded. Gaps of several devices are seen together, so an idle
    device next to a busy one is missed.
    """
    found = trace.derived(launching)
    window = found.window
    length = window.end - window.start
    rows = trace.gpu.kernels
    rows = rows[trace.events.begin_in(rows, window.start, window.end)]
    if len(rows) < kernels or not length:
        return
    if window.share(trace.derived(graph_captures).clip(window.start, window.end)) >= captured:
        return  # nothing is launched then, by design
    gaps = found.gaps
    short = (gaps.lengths <= LONGEST_NS) & (gaps.starts >= window.start)
    short &= ~gaps.of(Cause.PROFILER, Cause.END, Cause.SWITCH)
    others = Intervals(gaps.starts[short], gaps.ends[short])
    waited, once = found.late, int(found.late.lengths.max(initial=0))
    once = once if decides(once, waited.total, length) else 0
    total, phases = waited.total - once, ""
    if total < share * (length - once) or waited.total < late * others.total or found.queue > queue:
        # Not the whole of the steps; perhaps one of their phases.
        starved = {
            name: when
            for name, when in trace.derived(training_phases).items()
            if (waited & when).total >= max(share * when.total, late * (others & when).total)
            and _usual_queue(trace, when) <= queue
        }
        waited = waited & reduce(Intervals.__or__, starved.values(), Intervals.union([], []))
        phases = f" in {enumeration(list(starved))}"
        total, once = waited.total, int(waited.lengths.max(initial=0))
        if total < part * length or decides(once, total, length):
            return
    busy, waits = found.busy_ns / length, total / length
    doubtful = trace.has_stacks and busy >= 0.4  # without stacks to record the host might keep up
    operators, times = callers(trace, waited)
    advice = fewer_launches(trace, waited)
    if doubtful:
        first = "Record once more without Python stacks: the device may not wait then."
        advice = f"{first} Else {advice[0].lower()}{advice[1:]}"
    yield Finding(
        title=f"The device is busy {percent(busy)} of {time_of(trace, window)}; for {percent(waits)} it waits for the "
        f"next launch{phases or _mostly_in(trace, waited)}",
        most="medium" if doubtful else "high",
        confidence="low" if doubtful else "high" if busy < 0.5 else "medium",
        time_us=total / 1000,
        stretches=waited,
        window=window,
        evidence=evidence(trace, operators, times=times, note="host time while the device waits"),
        cause=_why_late(trace, rows, int(np.count_nonzero(found.chosen & (waited.overlap(gaps.starts, gaps.ends) > 0))))
        + _by_phase(trace, waited)
        + (" Recorded Python stacks lengthen the gaps." if trace.has_stacks else ""),
        fix=advice,
        linked=True,
    )


def _why_late(trace: Trace, kernels: Int32, late_gaps: int) -> str:
    """How short the kernels are, and how often the device ran out of work."""
    events, links = trace.events, trace.links
    linked = (links.launch >= 0) & np.isin(links.work, kernels)
    short = int(np.count_nonzero(events.dur[links.work[linked]] < events.dur[links.launch[linked]]))
    text = f"The {len(kernels):,} kernels take {duration_ns(float(np.median(events.dur[kernels])))} (median)"
    if short:
        text += f", {short:,} of them less than the call that launches them"
    return f"{text}. {often(late_gaps).capitalize()} the device had run out of work before its next launch returned."


def _usual_queue(trace: Trace, when: Intervals) -> float:
    """How many launches waited when one was issued during some time, the median; infinite without launches."""
    depths = [queue.depth[trace.events.covered(queue.launches, when) > 0] for queue in trace.derived(launch_queues)]
    depth = np.concatenate(depths) if depths else np.empty(0)
    return float(np.median(depth)) if len(depth) else np.inf


def _in_phases(trace: Trace, waited: Intervals) -> list[tuple[str, int]]:
    """How long of some time the host was in each phase of training, nanoseconds, the longest first."""
    spent = {name: (waited & when).total for name, when in trace.derived(training_phases).items()}
    return sorted(spent.items(), key=lambda each: -each[1])


def _mostly_in(trace: Trace, waited: Intervals) -> str:
    """The end of a title: which phase of training most of some time belongs to; "" where that doesn't stand out."""
    for name, spent in _in_phases(trace, waited)[:1]:
        if 2 * spent > waited.total:
            part = f"{percent(spent / waited.total)} of that in" if spent < waited.total else "all of it in"
            return f", {part} {name}"
    return ""


def _by_phase(trace: Trace, waited: Intervals) -> str:
    """A sentence on the phases of training in which the device waits; "" for a program that doesn't train."""
    seen = [f"{duration_ns(spent)} in {name}" for name, spent in _in_phases(trace, waited) if spent]
    return f" It waits {enumeration(seen)}." if seen else ""


@rule("B2", "compute-bound", source="90% as in TraceML", needs=("gpu", "idle", "order"), frees="nothing")
def compute_bound(trace: Trace, *, share: float = 0.9, queue: float = 2.0, other: float = 0.2) -> Iterator[Finding]:
    """The device is the limit, as it should be.

    Sees: the device busy for 90% of the window or more, with two launches or more waiting in the queue, or with
    CUDA graphs. Where it only copies or exchanges data for a fifth of the window, that is the limit, and not the
    kernels that compute.

    Costs: nothing; tuning the host would gain nothing.

    Fix: what the kernels do: precision, fusion, shapes, layout (family D).

    Known problems: busy means that a kernel runs, not that it uses the whole device: one small block counts as much as
    a full grid. D11, D12 and D13 look into that.
    """
    found = trace.derived(launching)
    window = found.window
    length = window.end - window.start
    graphs = len(trace.links.graph_launches) > 0  # one launch brings much work: none needs to wait behind it
    if not length or found.busy_ns < share * length or not (graphs or found.queue >= queue):
        return
    computing = trace.gpu.compute.clip(window.start, window.end).total
    if found.busy_ns - computing >= other * length:
        return
    yield Finding(
        title=f"The device is busy {percent(found.busy_ns / length)} of {time_of(trace, window)}: it is the limit",
        severity="info",
        confidence="high",
        stretches=trace.gpu.busy.clip(window.start, window.end),
        window=window,
        evidence=evidence(trace, trace.gpu.kernels),
        cause=f"{found.queue:,.0f} launches are queued when a new one is made (median): the device has work waiting."
        if found.queue >= queue
        else "CUDA graphs bring much work with one launch.",
        fix="Make the kernels faster; less work on the host gains nothing.",
        linked=True,
    )
