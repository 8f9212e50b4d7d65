"""What communication costs one rank."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from torchwhy.finding import Evidence, Finding
from torchwhy.rules.distributed.advice import behind_clones, most_of, overlap_advice
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.collectives import Collective, collectives_of
from torchwhy.trace.meaning.communication import DISTRIBUTED_DATA_PARALLEL, FULLY_SHARDED
from torchwhy.trace.meaning.operators import LEARNING
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent, size_text

__all__ = ["comm_share", "exposed_comm", "single_rank", "small_collectives"]


@rule(
    "F1",
    "comm-share",
    source="union of communication kernels; 10% as in the TensorBoard plugin",
    needs={"gpu", "idle"},
    frees="nothing",
)
def comm_share(trace: Trace, *, share: float = 0.1) -> Iterator[Finding]:
    """A good part of the time goes to communication between ranks.

    Sees: the union of all communication kernels as a share of the window, and the part of it during which nothing is
    computed. Worth knowing where it is hidden behind computation; what isn't is exposed-comm's.

    Costs: hidden communication still takes memory bandwidth and multiprocessors from the computation beside it.

    Fix: move less: fewer rounds (gradient accumulation under no_sync), smaller types (a bf16 compression hook), more
    work per rank.

    Known problems: kernels are known as communication by their names: NCCL, RCCL, oneCCL, NVSHMEM, and those of vLLM,
    SGLang, TensorRT-LLM, FlashInfer, AITER, DeepEP. A fused kernel that computes as well counts in full.
    """
    window = trace.window
    spent = window.share(trace.gpu.communication.clip(window.start, window.end))
    alone = trace.gpu.exposed_communication.clip(window.start, window.end)
    if not spent or spent < share:
        return
    found = trace.derived(collectives_of)
    reduces = most_of(found) == "all_reduce" and trace.events.any_of(LEARNING)
    yield Finding(
        title=f"Communication runs for {percent(spent)} of the time; for {percent(window.share(alone))} "
        "nothing is computed meanwhile",
        severity="info",
        confidence="high",
        stretches=alone,
        window=window,
        evidence=_by_kind(trace),
        cause="Every step exchanges data between the ranks; the time includes waiting for ranks that come later.",
        fix="Exchange less: accumulate gradients over several batches before they are reduced, reduce them in bf16, "
        "or give each rank more work between two exchanges."
        if reduces
        else overlap_advice(trace, found),
        linked=True,
    )


@rule(
    "F2",
    "exposed-comm",
    source="communication minus computation, as unions over streams; 5% of the window",
    needs={"gpu", "idle"},
    frees="exposed",
)
def exposed_comm(trace: Trace, *, share: float = 0.05) -> Iterator[Finding]:
    """The device communicates while it computes nothing.

    Sees: the union of communication kernels minus the union of computing ones, as a share of the window, and how much
    of the communication is hidden.

    Costs: that time is lost on every rank. Part of it may be waiting for a slower rank, which one trace can't tell.

    Fix: overlap: larger or smaller buckets, prefetching, asynchronous calls; or move less.

    Known problems: waiting for a slower rank counts as communication here; the traces of all ranks tell them apart.
    """
    window = trace.window
    spent = trace.gpu.communication.clip(window.start, window.end)
    alone = trace.gpu.exposed_communication.clip(window.start, window.end)
    part = window.share(alone)
    if not alone or part < share:
        return
    hidden = 1 - alone.total / spent.total
    found = trace.derived(collectives_of)
    rows = np.array([c.row for c in found], np.int32)
    yield Finding(
        title=f"For {percent(part)} of the time the device only communicates; {percent(hidden)} of the "
        "communication is hidden",
        confidence="high",
        stretches=alone,
        window=window,
        evidence=_by_kind(trace, times=trace.events.covered(rows, alone)),
        cause="Nothing else is ready to run while these exchanges take place; a part may be waiting for a rank that "
        "comes late: with the traces of all ranks the rule last-rank tells which.",
        fix=overlap_advice(trace, found),
        linked=True,
    )


@rule(
    "F7",
    "small-collectives",
    source="sizes that record_param_comms and communication kernels tell; 50 per step below 1 MB",
    needs={"gpu", "idle"},
    frees="exposed",
)
def small_collectives(
    trace: Trace, *, size_mb: float = 1.0, per_step: int = 50, share: float = 0.01
) -> Iterator[Finding]:
    """Many small collectives instead of few large ones.

    Sees: more than fifty collectives per step with a median size below a megabyte, and the time in which nothing is
    computed beside the small ones.

    Costs: below about a megabyte a collective's time is latency, 10 to 50 microseconds, whatever it carries.

    Fix: pack tensors into one before they are exchanged: larger buckets for DDP, larger blocks for FSDP, one flat
    tensor where the program reduces tensor by tensor, one message for all tables where embeddings are exchanged.

    Known problems: sizes are known where `record_param_comms` or the kernel tells them; inference servers' own kernels
    mostly don't.
    """
    steps = trace.steps_found
    found = [c for c in trace.derived(collectives_of) if c.bytes > 0 and c.name not in {"barrier", "send", "recv"}]
    found = [c for c in found if trace.window.start <= c.start < trace.window.end]
    if not steps or len(found) <= per_step * len(steps):
        return
    median = float(np.median([c.bytes for c in found]))
    small = [c for c in found if c.bytes < size_mb * 1e6]
    alone = trace.gpu.exposed_communication.clip(trace.window.start, trace.window.end)
    lost = alone & _union(small)
    part = trace.window.share(lost)
    if median >= size_mb * 1e6 or not len(lost) or part < share:
        return
    most, cloned = most_of(small), behind_clones(trace, small)
    behind = f" {cloned} of them exchange a copy that was made just before." if 2 * cloned > len(small) else ""
    yield Finding(
        title=f"{len(found) / len(steps):.0f} collectives per step, half of them below {size_text(median)}",
        confidence="high",
        stretches=lost,
        window=trace.window,
        evidence=_by_kind(trace, small),
        cause="Messages this small take a collective's latency and little else." + behind,
        fix=_fewer(trace, most, cloned=bool(behind)),
        linked=True,
    )


@rule(
    "F8",
    "single-rank-caution",
    source="world_size of distributedInfo; a collective ends on all ranks together",
    needs={"gpu"},
    frees="exposed",
)
def single_rank(trace: Trace, *, share: float = 0.05) -> Iterator[Finding]:
    """One rank's trace cannot tell waiting from communicating.

    Sees: a trace of one of several ranks in which communication takes five percent of the window or more.

    Costs: nothing; but a collective's time on one rank includes waiting for the one that comes last, so bandwidths
    computed from it are lower bounds.

    Fix: give the folder with the traces of all ranks: it shows who is waited for.

    Known problems: a file without distributedInfo says nothing of other ranks, and this rule stays silent.
    """
    ranks = trace.info.world_size or 0
    spent = trace.gpu.communication.clip(trace.window.start, trace.window.end)
    part = trace.window.share(spent)
    if ranks < 2 or not part or part < share:
        return
    yield Finding(
        title=f"Communication takes {percent(part)} of the time, and one rank of {ranks} can't show "
        "how much is waiting",
        severity="info",
        confidence="high",
        stretches=spent,
        window=trace.window,
        evidence=_by_kind(trace),
        cause="A collective ends on all ranks together and begins on each when that one arrives.",
        fix="Record every rank into one folder, and run torchwhy explain on the folder.",
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
        items.append(replace(first, name=name, count=n, time_us=us, note=note, rows=rows[same]))
    return tuple(sorted(items, key=lambda item: -(item.time_us or 0)))[:5]


def _fewer(trace: Trace, most: str, *, cloned: bool) -> str:
    """How to make fewer and larger collectives of many small ones."""
    events = trace.events
    if most == "all_to_all":
        return "Exchange all tables, or all experts' tokens, in one message with their sizes (all_to_all_single)."
    if most == "sharding" and events.any_of(FULLY_SHARDED):
        return "Shard larger blocks with FSDP: each wrapped module is gathered and reduced by itself."
    if cloned or not events.any_of(DISTRIBUTED_DATA_PARALLEL):
        return (
            "Reduce one flat tensor instead of each by itself (torch.cat of the flattened ones, or "
            "torch.distributed's _coalesced variants), in place instead of on a clone; for gradients "
            "DistributedDataParallel does that."
        )
    return "A larger bucket_cap_mb, so that DDP puts more gradients into each."


def _union(found: list[Collective]) -> Intervals:
    return Intervals.union([c.start for c in found], [c.start + c.duration for c in found])
