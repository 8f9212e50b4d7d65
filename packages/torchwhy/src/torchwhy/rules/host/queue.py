"""Launches that wait in the queue of a stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from torchwhy.finding import Finding, severity_of
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.gaps import Cause, device_window, idle_gaps
from torchwhy.trace.derived.launches import launch_queues
from torchwhy.trace.meaning.runtime import STREAM_WAIT
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import duration_ns, often, percent

__all__ = ["FULL", "queue_saturated", "stalled_queue"]

FULL: Final = 1000
"""A stream takes about 1024 launches before the next call waits; 1022 have been seen."""


@rule(
    "B6",
    "queue-saturated",
    source="the launch queue's size, 1024, as in Holistic Trace Analysis",
    needs=("gpu", "order"),
)
def queue_saturated(trace: Trace, *, depth: int = FULL) -> Iterator[Finding]:
    """The launch queue is full: the host is as far ahead as it can be.

    Sees: a stream with 1000 launches or more waiting.

    Costs: nothing. Launching calls then wait for a free place, so the host's time in them is waiting and not work.

    Fix: none; don't read the duration of launching calls as overhead. What limits is the device.

    Known problems: the queue's size is a driver's choice; other drivers may have another one.
    """
    for queue in trace.derived(launch_queues):
        full = queue.depth >= depth
        if not full.any():
            continue
        rows = queue.launches[full]
        waiting = int(trace.events.dur[rows].sum()) / 1000
        yield Finding(
            title=f"Up to {int(queue.depth.max()) + 1:,} launches wait for stream {queue.stream}: the queue is full",
            severity="info",
            confidence="high",
            time_us=min(waiting, trace.window.us),
            window=trace.window,
            evidence=evidence(trace, rows, limit=3),
            cause="The host is far ahead of the device; launching calls wait for a free place.",
            fix="Nothing on the host: the device is the limit.",
            linked=True,
        )


@rule("B25", "stalled-queue", source="gaps before which work was queued already", needs=("gpu", "idle", "order"))
def stalled_queue(trace: Trace, *, share: float = 0.1) -> Iterator[Finding]:
    """Work is queued, and the device doesn't begin it.

    Sees: idle time of the device after the call that launched its next work had returned: more than 5 us after other
    work, more than 25 us where the device had none; 10% of the window or more. The host's part of such a gap, until the
    call returned, isn't counted.

    Costs: that time. The host isn't the reason, so making it faster gains nothing.

    Fix: look for what the work waits for: an event of another stream (`cudaStreamWaitEvent`), the legacy default
    stream, another rank, another process on the same device. Before the first recorded work of a stream it is often
    work from before the recording, which no trace shows: synchronise once before recording.

    Known problems: what a stream waits for isn't recorded, so the cause is inferred. Where the launch of the next work
    is missing from the trace, nothing is counted.
    """
    gaps, window = trace.derived(idle_gaps), device_window(trace)
    chosen = gaps.of(Cause.DEVICE) & (gaps.starts >= window.start) & (gaps.ends <= window.end)
    stalls = Intervals(gaps.starts[chosen], gaps.ends[chosen])
    part = window.share(stalls)
    if not part or part < share:
        return
    work, lengths = gaps.work[chosen], stalls.lengths
    waits = trace.events.of(STREAM_WAIT)
    first = int(lengths[work == trace.links.work[0]].sum())
    if first * 2 > stalls.total:
        cause = (
            f"{duration_ns(first)} of it pass between the launch of the first recorded work and its start: the device "
            "may still run what was queued before the recording began, or the driver sets it up."
        )
        fix = "Call torch.cuda.synchronize() before recording begins, or record later: schedule(wait=1, warmup=1, ...)."
    else:
        cause = "The trace doesn't say what it waits for; other processes on the device can't be seen either."
        if len(waits):
            cause = f"Streams wait for events of others: {often(len(waits))} cudaStreamWaitEvent or its like."
        elif len(trace.gpu.streams) > 1:
            cause = "Several streams are in use, and the default stream waits for all others."
        fix = (
            "Order streams by as few events as possible, record them as early as possible, and keep work off the "
            "default stream; check with nvidia-smi that no other process uses the device."
        )
    yield Finding(
        title=f"The device is idle {percent(part)} of the time although its next work has been launched",
        severity="info" if first * 2 > stalls.total else severity_of(part),
        confidence="medium",
        stretches=stalls,
        window=window,
        evidence=(*evidence(trace, work, times=lengths, note="idle time before it"), *evidence(trace, waits, limit=1)),
        cause=cause,
        fix=fix,
    )
