"""Exchanges of a program whose file holds no work of a device: through Gloo or MPI, or by a device's library."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.distributed.advice import fewer
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.collectives import Collective, collective_times, own_collectives
from torchwhy.trace.derived.cpu_communication import idle_exchanging
from torchwhy.trace.derived.recorded import recorded
from torchwhy.trace.meaning.communication import DEVICE_COLLECTIVE
from torchwhy.trace.meaning.operators import LEARNING
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import duration_ns, percent, size_text

__all__ = ["cpu_exposed_comm", "host_small_collectives"]


@rule(
    "F10",
    "cpu-exposed-comm",
    source="annotations of Gloo and MPI (`gloo:all_reduce`) minus operators that compute; 5% of the window",
    frees="all",
)
def cpu_exposed_comm(trace: Trace, *, share: float = 0.05) -> Iterator[Finding]:
    """A program without GPU waits for other ranks, or for what they send.

    Sees: the time in collectives of Gloo or MPI during which no operator runs on any recorded thread, in a program
    without GPU, in 5% of the window or more. Silent where host-small-collectives says more.

    Costs: that time on every rank. Part of it may be waiting for a slower rank, which one trace can't show.

    Fix: fewer exchanges (gradient accumulation under no_sync), larger batches, fewer and fatter ranks with more threads
    each; the traces of all ranks in one folder show which rank the others wait for.

    Known problems: an operator that itself waits inside counts as computing.
    """
    if not trace.derived(recorded).on_processor:
        return
    alone = trace.derived(idle_exchanging)
    part = trace.window.share(alone)
    if not alone.total or part < share:
        return
    _, lost = _small(trace, **host_small_collectives.in_force)
    if 2 * lost.total > alone.total:
        return
    rows = np.array([c.row for c in trace.derived(own_collectives)], np.int32)
    start, end = trace.events.ts[rows], np.asarray(trace.events.end[rows])
    done = np.maximum.accumulate(np.append(start[:1], end[:-1]))  # of collectives at one time the first gets it
    spent = alone.overlap(np.minimum(np.maximum(start, done), end), end)
    trains = trace.events.any_of(LEARNING)
    yield Finding(
        title=f"For {percent(part)} of the window the program exchanges data with other ranks and runs no operator",
        confidence="high",
        stretches=alone,
        window=trace.window,
        evidence=evidence(trace, rows, times=spent),
        cause="No operator runs meanwhile, so the program seems to wait for the result. A part of the time may be "
        "waiting for another rank: the traces of all ranks in one folder show it.",
        fix="Exchange less often: larger batches, or several backward passes under no_sync() for one exchange; or use "
        "fewer ranks with more threads each."
        if trains
        else "Start the exchange earlier (async_op=True) and wait() where its result is used; exchange several tensors "
        "in one message; or use fewer ranks with more threads each.",
        linked=True,
    )


@rule(
    "F12",
    "host-small-collectives",
    source="labels of collectives on the host; 50 per step below 1 MB, or below 1 ms where their size is unknown",
    frees="all",
)
def host_small_collectives(
    trace: Trace, *, size_mb: float = 1.0, shorter_ms: float = 1.0, per_step: int = 50, share: float = 0.02
) -> Iterator[Finding]:
    """Many small collectives, in a file without any work of a device.

    Sees: more than fifty collectives per step below a megabyte, or, where no size was recorded, below a millisecond.
    Their time counts while no operator computes on the processor. Of a device's library (`nccl:all_reduce`) the file
    has only the launches, whose time on the host counts.

    Costs: each collective costs its call, 20 to 100 microseconds on the host, and a round between the ranks.

    Fix: pack tensors into one before they are exchanged; for gradients DistributedDataParallel does that.

    Known problems: without a device's work it isn't known whether the host or the device is the limit.
    """
    if trace.has_gpu:
        return
    small, lost = _small(trace, size_mb, shorter_ms, per_step, share)
    if not small:
        return
    rows = np.array([c.row for c in small], np.int32)
    sizes = [c.bytes for c in small if c.bytes > 0]
    each = (
        f"{size_text(float(np.median(sizes)))} each at the median"
        if 2 * len(sizes) > len(small)
        else f"{duration_ns(float(np.median([c.duration for c in small])))} each at the median"
    )
    times = trace.events.covered(rows, lost)
    yield Finding(
        title=f"{len(small) / len(trace.steps_found):,.0f} small collectives per step, {each}",
        confidence="medium",
        most="medium",
        stretches=lost,
        window=trace.window,
        evidence=evidence(trace, rows, times=times),
        cause="Each collective costs a call on the host and a round between the ranks, whatever its size.",
        fix=fewer(trace, small, times, cloned=False),
        linked=True,
    )


def _small(
    trace: Trace, size_mb: float, shorter_ms: float, per_step: int, share: float
) -> tuple[list[Collective], Intervals]:
    """The small collectives of the window and their time; nothing where they are few or cost little."""
    small = [
        one
        for one in trace.derived(own_collectives)
        if one.name != "barrier" and (one.bytes < size_mb * 1e6 if one.bytes > 0 else one.duration < shorter_ms * 1e6)
    ]
    steps = trace.steps_found
    rows = np.array([one.row for one in small], np.int32)
    launches = [one for one, of in zip(small, trace.events.are(DEVICE_COLLECTIVE, rows).tolist(), strict=True) if of]
    lost = collective_times(trace, launches) | (collective_times(trace, small) & trace.derived(idle_exchanging))
    if not steps or len(small) <= per_step * len(steps) or trace.window.share(lost) < share:
        return [], Intervals.union([], [])
    return small, lost
