"""The cost of communication for one rank."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import ceil
from typing import Final

import numpy as np

from torchwhy.finding import Evidence, Finding
from torchwhy.rules.distributed.advice import COME_TOGETHER, behind_clones, fewer, overlap_advice
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.collectives import Collective, collective_times, own_collectives, waiting_at_least
from torchwhy.trace.derived.replay import replay
from torchwhy.trace.file.columns import Int64
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.operators import LEARNING
from torchwhy.trace.meaning.programs import AUTOGRAD
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent, size_text

__all__ = ["exposed_comm", "small_collectives"]

BUCKET: Final = 25e6
"""Bytes; what DDP exchanges at once by default."""

_POINT_TO_POINT = frozenset({"barrier", "send", "recv", "send_recv"})


@rule(
    "F2",
    "exposed-comm",
    source="communication minus computation, as unions over streams; 5% of the window",
    needs={"gpu", "idle"},
    frees="exposed",
)
def exposed_comm(trace: Trace, *, share: float = 0.05, waiting: float = 0.5) -> Iterator[Finding]:
    """The device communicates while it computes nothing.

    Sees: the union of communication kernels minus the union of computing ones, as a share of the window, and how much
    of the communication is hidden. Kernels launched before the window don't count. Where exchanges of one kind that
    carry as much take very different times, the difference is waiting. Silent where small-collectives says more.

    Costs: that time is lost on every rank, up to the host's next wait for the device.

    Fix: where the time is waiting, give the ranks equal work. Else overlap: larger or smaller buckets, prefetching,
    asynchronous calls; or move less.

    Known problems: one rank's trace shows waiting only where equal exchanges differ; the traces of all ranks show all
    of it. A fused kernel that computes as well as communicates counts in full.
    """
    window = trace.window
    found = trace.derived(own_collectives)
    spent = collective_times(trace, found)
    alone = spent - trace.gpu.compute
    part = window.share(alone)
    if not alone or part < share:
        return
    known = small_collectives.in_force
    _, lost = _small(trace, known["size_mb"], known["per_step"], known["share"])
    if 2 * lost.total > alone.total:
        return
    times = trace.events.covered([c.row for c in found], alone)
    waits = int(np.minimum(waiting_at_least(found), times).sum()) / max(int(times.sum()), 1)
    ranks = trace.info.world_size or 0
    if ranks == 1:
        cause = "The program has one rank: its collectives have no other rank to exchange data with."
        fix = "Leave the collectives out where torch.distributed.get_world_size() is 1."
    elif waits >= waiting:
        cause = (
            f"At least {percent(waits)} of that time is waiting for another rank: exchanges of the same kind that "
            "carry as much, or more, finish this much sooner."
        )
        fix = COME_TOGETHER
    else:
        cause = "Nothing else is ready to run during these exchanges. " + (
            f"One rank's trace doesn't show how much of it is waiting for another one: record all {ranks} ranks."
            if ranks
            else "A part may be waiting for another rank: the traces of all ranks in one folder show it."
        )
        fix = overlap_advice(trace, found, times)
    earlier = (trace.gpu.communication - spent).clip(window.start, window.end)
    without = " (earlier launches left out)" if len(earlier) else ""
    yield Finding(
        title=f"For {percent(part)} of the window the device only communicates{without}; "
        f"{percent(1 - alone.total / spent.total)} of this communication is hidden",
        confidence="high",
        stretches=alone,
        window=window,
        evidence=_by_kind(trace, found, times),
        cause=cause,
        fix=fix,
        linked=True,
    )


@rule(
    "F7",
    "small-collectives",
    source="sizes that record_param_comms and communication kernels show; 50 per step below 1 MB",
    needs={"gpu", "idle"},
    frees="all",
)
def small_collectives(
    trace: Trace,
    *,
    size_mb: float = 1.0,
    per_step: int = 50,
    share: float = 0.01,
    called: int = 20,
    hosts: float = 0.03,
) -> Iterator[Finding]:
    """Many small collectives instead of few large ones.

    Sees: more than fifty collectives per step below a megabyte, and their time in which nothing is computed: 1% of the
    window or more. Or more than twenty, where the host's calls for them hold up the device by 3% of the window.

    Costs: below about a megabyte a collective's time is latency, 10 to 50 microseconds, whatever it carries; and each
    costs the host as long again. At stake is the time by which buckets of 25 MB shorten the window.

    Fix: pack tensors into one before they are exchanged: larger buckets for DDP, larger blocks for FSDP, one flat
    tensor where the program reduces tensor by tensor, one message for all tables where embeddings are exchanged.

    Known problems: sizes are known where `record_param_comms` or the kernel has them; inference servers' own kernels
    mostly don't. All-reduces of a program without a backward pass are left out: each is needed before the next begins.
    """
    small, lost = _small(trace, size_mb, per_step, share)
    if not small:
        small, lost = _small(trace, size_mb, called, 0.0)
    # In buckets go the large ones of the kind, too.
    packed = [one for one in trace.derived(own_collectives) if one.name in {each.name for each in small}]
    steps = max(len(trace.steps_found), 1)
    left = steps * ceil(sum(max(one.bytes, 0) for one in packed) / steps / BUCKET)
    calls = _calls(trace, packed)
    part = max(1 - left / max(len(packed), 1), 0.0)
    saved = trace.derived(replay).saved(host=calls, host_part=part, device=lost)
    if not small or (len(small) <= per_step * steps and saved < hosts * trace.window.us * 1000):
        return
    times = trace.events.covered([c.row for c in small], lost)
    cloned = behind_clones(trace, small)
    behind = f" {cloned} of them exchange a copy that was made just before." if 2 * cloned > len(small) else ""
    median = float(np.median([c.bytes for c in small]))
    yield Finding(
        title=f"{len(small) / len(trace.steps_found):,.0f} collectives per step carry less than "
        f"{size_text(size_mb * 1e6)}: {size_text(median)} at the median",
        confidence="high",
        time_us=saved / 1000,
        stretches=lost | calls,
        window=trace.window,
        evidence=_by_kind(trace, small, times),
        cause="A message this small takes the time of a round between the ranks, whatever its size." + behind,
        fix=fewer(trace, small, times, cloned=bool(behind)),
        linked=True,
    )


def _calls(trace: Trace, found: Sequence[Collective]) -> Intervals:
    """When the host called for some collectives: the operators around their launches, within the backward pass."""
    events, rows = trace.events, []
    for one in found:
        above = [] if one.launch < 0 else [*trace.ancestors(one.launch)]
        above = [row for row in above if events.kind[row] == Kind.OPERATOR]
        inner = next((i for i, row in enumerate(above) if AUTOGRAD.names(trace.name(row))), len(above))
        rows += above[:inner][-1:]
    return trace.when(np.array(rows, np.int32))


def _small(trace: Trace, size_mb: float, per_step: int, share: float) -> tuple[list[Collective], Intervals]:
    """The small collectives of the window and when they are exposed; nothing where they are few or cost little."""
    steps, trains = trace.steps_found, trace.events.any_of(LEARNING)
    small = [
        one
        for one in trace.derived(own_collectives)
        if 0 < one.bytes < size_mb * 1e6 and one.name not in _POINT_TO_POINT and (trains or one.name != "all_reduce")
    ]
    lost = collective_times(trace, small) - trace.gpu.compute
    if not steps or len(small) <= per_step * len(steps) or trace.window.share(lost) < share or not lost:
        return [], Intervals.union([], [])
    return small, lost


def _by_kind(trace: Trace, found: Sequence[Collective], times: Int64) -> tuple[Evidence, ...]:
    """The collectives by kind and library, with sizes where they are known."""
    if not found:
        return evidence(trace, trace.gpu.rows[:0])
    rows = np.array([c.row for c in found], np.int32)
    kinds = [(c.name, c.library) for c in found]
    items = []
    for kind in dict.fromkeys(kinds):
        same = np.array([one == kind for one in kinds])
        sizes = [c.bytes for c, chosen in zip(found, same.tolist(), strict=True) if chosen and c.bytes > 0]
        note = ", ".join(text for text in (kind[1], _sizes(sizes)) if text)
        first = evidence(trace, rows[same], times=times[same], limit=1)[0]
        us, n = int(times[same].sum()) / 1000, int(same.sum())
        items.append(replace(first, name=kind[0], count=n, time_us=us, note=note, rows=rows[same]))
    return tuple(sorted(items, key=lambda item: -(item.time_us or 0)))[:5]


def _sizes(sizes: Sequence[int]) -> str:
    return f"{size_text(float(np.median(sizes)))} at the median" if sizes else ""
