"""What communication costs one rank."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from torchfx.profiler.rules.evidence import evidence, severity_of
from torchfx.profiler.rules.finding import Evidence, Finding
from torchfx.profiler.rules.rule import rule
from torchfx.profiler.trace.derived.collectives import Collective, collectives_of
from torchfx.profiler.trace.meaning.kinds import Kind
from torchfx.profiler.trace.model.intervals import Intervals
from torchfx.profiler.trace.model.trace import Trace
from torchfx.profiler.wording import percent, size_text

__all__ = ["comm_share", "exposed_comm", "single_rank", "small_collectives"]

WRAPPERS: Final = (
    (
        r"FullyShardedDataParallel|FSDP::",
        "FSDP: prefetch (backward_prefetch=BACKWARD_PRE, forward_prefetch=True), and wrap larger blocks, so that fewer "
        "and longer gathers hide behind longer computation.",
    ),
    (
        r"DistributedDataParallel\.forward",
        "DDP overlaps with the backward pass by itself: try a larger or smaller bucket_cap_mb, static_graph=True, "
        "gradient_as_bucket_view=True; with gradient accumulation wrap all but the last round in no_sync().",
    ),
)
PAIRS: Final = frozenset({"send", "recv", "send_recv"})
PIPELINE: Final = (
    "Most of it is sent from rank to rank. Between the stages of a pipeline: more and smaller micro-batches, stages of "
    "equal time, an interleaved schedule (torch.distributed.pipelining); elsewhere isend and irecv ahead of time."
)
ELSE: Final = (
    "Start it earlier and wait later: async_op=True, and wait() where the result is used; or compute meanwhile."
)


@rule(
    "F1",
    "comm-share",
    source="union of communication kernels; 10% as in the TensorBoard plugin",
    needs={"gpu", "idle"},
)
def comm_share(trace: Trace, *, share: float = 0.1) -> Iterator[Finding]:
    """A good part of the time goes to communication between ranks.

    Sees: the union of all communication kernels as a share of the window, and the part of it during which nothing is
    computed. Worth knowing where it is hidden behind computation; what isn't is exposed-comm's.

    Costs: hidden communication still takes memory bandwidth and multiprocessors from the computation beside it.

    Fix: move less: fewer rounds (gradient accumulation under no_sync), smaller types (a bf16 compression hook), more
    work per rank.
    """
    window = trace.window
    spent = trace.gpu.communication.clip(window.start, window.end).total / 1000
    alone = trace.gpu.exposed_communication.clip(window.start, window.end).total / 1000
    if not spent or spent < share * window.us:
        return
    yield Finding(
        title=f"Communication runs for {percent(spent / window.us)} of the time; for {percent(alone / window.us)} "
        "nothing is computed meanwhile",
        severity="info",
        confidence="high",
        time_us=alone,
        window=window,
        evidence=_by_kind(trace),
        cause="Every step exchanges data between the ranks; the time includes waiting for ranks that come later.",
        fix=PIPELINE
        if _point_to_point(trace)
        else "Exchange less: accumulate gradients over several batches before they are reduced, reduce them in bf16, "
        "or give each rank more work between two exchanges.",
        linked=True,
    )


@rule(
    "F2",
    "exposed-comm",
    source="communication minus computation, as unions over streams; 5% of the window",
    needs={"gpu", "idle"},
)
def exposed_comm(trace: Trace, *, share: float = 0.05) -> Iterator[Finding]:
    """The device communicates while it computes nothing.

    Sees: the union of communication kernels minus the union of computing ones, as a share of the window, and how much
    of the communication is hidden.

    Costs: that time is lost on every rank. Part of it may be waiting for a slower rank, which one trace can't tell.

    Fix: overlap: larger or smaller buckets, prefetching, asynchronous calls; or move less.
    """
    window = trace.window
    spent = trace.gpu.communication.clip(window.start, window.end)
    alone = trace.gpu.exposed_communication.clip(window.start, window.end)
    total = alone.total / 1000
    if not total or total < share * window.us:
        return
    hidden = 1 - alone.total / spent.total
    found = trace.derived(collectives_of)
    rows = np.array([c.row for c in found], np.int32)
    start, end = trace.events.ts[rows], trace.events.end[rows]
    yield Finding(
        title=f"For {percent(total / window.us)} of the time the device only communicates; {percent(hidden)} of the "
        "communication is hidden",
        severity=severity_of(total / window.us),
        confidence="high",
        time_us=total,
        window=window,
        evidence=_by_kind(trace, times=alone.overlap(start, end)),
        cause="Nothing else is ready to run while these exchanges take place; a part may be waiting for a rank that "
        "comes late, which the rule last-rank tells from the traces of all ranks.",
        fix=_overlap_advice(trace),
        linked=True,
    )


@rule(
    "F7",
    "small-collectives",
    source="sizes that record_param_comms and communication kernels tell; 50 per step below 1 MB",
    needs={"gpu", "idle"},
)
def small_collectives(
    trace: Trace, *, size_mb: float = 1.0, per_step: int = 50, share: float = 0.01
) -> Iterator[Finding]:
    """Many small collectives instead of few large ones.

    Sees: more than fifty collectives per step with a median size below a megabyte, and the time in which nothing is
    computed beside the small ones.

    Costs: below about a megabyte a collective's time is latency, 10 to 50 microseconds, whatever it carries.

    Fix: larger buckets (bucket_cap_mb), larger FSDP blocks, or pack tensors into one before they are exchanged.
    """
    steps = trace.steps_found
    found = [c for c in trace.derived(collectives_of) if c.bytes > 0 and c.name not in {"barrier", "send", "recv"}]
    found = [c for c in found if trace.window.start <= c.start < trace.window.end]
    if not steps or len(found) <= per_step * len(steps):
        return
    median = float(np.median([c.bytes for c in found]))
    small = [c for c in found if c.bytes < size_mb * 1e6]
    alone = trace.gpu.exposed_communication.clip(trace.window.start, trace.window.end)
    total = (alone & _union(small)).total / 1000
    if median >= size_mb * 1e6 or total < share * trace.window.us:
        return
    yield Finding(
        title=f"{len(found) / len(steps):.0f} collectives per step, half of them below {size_text(median)}",
        severity=severity_of(total / trace.window.us),
        confidence="high",
        time_us=total,
        window=trace.window,
        evidence=_by_kind(trace, small),
        cause="Messages this small take a collective's latency and little else.",
        fix="Put more into each: a larger bucket_cap_mb for DDP, larger blocks for FSDP, or one packed tensor "
        "(torch.distributed's _coalesced variants do that).",
        linked=True,
    )


@rule(
    "F8",
    "single-rank-caution",
    source="world_size of distributedInfo; a collective ends on all ranks together",
    needs={"gpu"},
)
def single_rank(trace: Trace, *, share: float = 0.05) -> Iterator[Finding]:
    """One rank's trace cannot tell waiting from communicating.

    Sees: a trace of one of several ranks in which communication takes five percent of the window or more.

    Costs: nothing; but a collective's time on one rank includes waiting for the one that comes last, so bandwidths
    computed from it are lower bounds.

    Fix: give the folder with the traces of all ranks: it shows who is waited for.
    """
    ranks = trace.info.world_size or 0
    spent = trace.gpu.communication.clip(trace.window.start, trace.window.end).total / 1000
    if ranks < 2 or not spent or spent < share * trace.window.us:
        return
    yield Finding(
        title=f"Communication takes {percent(spent / trace.window.us)} of the time, and one rank of {ranks} can't show "
        "how much is waiting",
        severity="info",
        confidence="high",
        time_us=spent,
        window=trace.window,
        evidence=_by_kind(trace),
        cause="A collective ends on all ranks together and begins on each when that one arrives.",
        fix="Record every rank into one folder and look at that.",
        linked=True,
    )


def _by_kind(
    trace: Trace, found: list[Collective] | None = None, times: np.ndarray[tuple[int], np.dtype[np.int64]] | None = None
) -> tuple[Evidence, ...]:
    """The collectives by kind, with sizes where they are known."""
    every: list[Collective] = list(trace.derived(collectives_of)) if found is None else found
    if not every:
        return evidence(trace, trace.gpu.rows[:0])
    rows = np.array([c.row for c in every], np.int32)
    spent = trace.events.dur[rows] if times is None else times
    items = []
    for name in dict.fromkeys(c.name for c in every):
        same = np.array([c.name == name for c in every])
        sizes = [c.bytes for c in every if c.name == name and c.bytes > 0]
        note = f"median size {size_text(float(np.median(sizes)))}" if sizes else ""
        first = evidence(trace, rows[same], times=spent[same], limit=1)[0]
        us, n = int(spent[same].sum()) / 1000, int(same.sum())
        items.append(Evidence(name, n, us, first.start_us, first.where, first.stack, note))
    return tuple(sorted(items, key=lambda item: -(item.time_us or 0)))[:5]


def _point_to_point(trace: Trace) -> bool:
    """Whether most of the communication is sent from one rank to another, as between the stages of a pipeline."""
    found = trace.derived(collectives_of)
    return 2 * sum(c.duration for c in found if c.name in PAIRS) > sum(c.duration for c in found)


def _overlap_advice(trace: Trace) -> str:
    if _point_to_point(trace):
        return PIPELINE
    events = trace.events
    kinds = (Kind.ANNOTATION, Kind.OPERATOR)
    return next((advice for pattern, advice in WRAPPERS if len(events.find(pattern, *kinds))), ELSE)


def _union(found: list[Collective]) -> Intervals:
    return Intervals.union([c.start for c in found], [c.start + c.duration for c in found])
