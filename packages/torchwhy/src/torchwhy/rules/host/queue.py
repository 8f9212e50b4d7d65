"""Launches that wait in the queue of a stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.gaps import Cause, device_window, idle_gaps
from torchwhy.trace.derived.launches import launch_queues
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.runtime import STREAM_WAIT
from torchwhy.trace.model.device import devices_of, streams_of
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import often, percent

__all__ = ["FULL", "queue_saturated", "stalled_queue"]

FULL: Final = 1000
"""A stream takes about 1024 launches before the next call waits; 1022 have been seen."""


@rule(
    "B6",
    "queue-saturated",
    source="the launch queue's size, 1024, as in Holistic Trace Analysis",
    needs=("gpu", "order"),
    frees="nothing",
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
        yield Finding(
            title=f"Up to {int(queue.depth.max()) + 1:,} launches wait for stream {queue.stream}: the queue is full",
            severity="info",
            confidence="high",
            stretches=trace.when(rows),
            window=trace.window,
            evidence=evidence(trace, rows, limit=3),
            cause="The host is far ahead of the device; launching calls wait for a free place.",
            fix="Nothing on the host: the device is the limit.",
            linked=True,
        )


@rule(
    "B25",
    "stalled-queue",
    source="gaps before which work was queued already",
    needs=("gpu", "idle", "order"),
    frees="all",
)
def stalled_queue(trace: Trace, *, share: float = 0.1) -> Iterator[Finding]:
    """Work is queued, and the device doesn't begin it.

    Sees: idle time of the device after the call that launched its next work had returned: more than 5 us after other
    work, more than 25 us where the device had none; 10% of the window or more. The host's part of such a gap, until the
    call returned, isn't counted, nor is a gap before the first recorded work of a stream: it may still run what was
    queued before the recording.

    Costs: that time. The host isn't the reason, so making it faster gains nothing.

    Fix: fewer waits for events of other streams (`cudaStreamWaitEvent`), where the work was launched after one;
    otherwise look for another process on the same device, and for work on the legacy default stream.

    Known problems: what a stream waits for isn't recorded, so the cause is inferred from the calls before the launch.
    Where the launch of the next work is missing from the trace, nothing is counted.
    """
    gaps, window = trace.derived(idle_gaps), device_window(trace)
    chosen = gaps.of(Cause.DEVICE) & (gaps.starts >= window.start) & (gaps.ends <= window.end)
    chosen &= ~np.isin(gaps.work, _first_of_streams(trace))
    stalls = Intervals(gaps.starts[chosen], gaps.ends[chosen])
    part = window.share(stalls)
    if not part or part < share:
        return
    work, lengths = gaps.work[chosen], stalls.lengths
    waits = _waits_before(trace, gaps.launch[chosen])
    ordered = int(lengths[waits >= 0].sum())
    if ordered * 2 > stalls.total:
        cause = (
            f"{often(int(np.count_nonzero(waits >= 0))).capitalize()}, {percent(ordered / stalls.total)} of that time, "
            "the work was launched after a call that makes its stream wait for an event of another one."
        )
        fix = "Use fewer events to order streams, and record each event right after the work that matters."
    else:
        cause = "The recording doesn't show the reason. Work of other processes on the device isn't recorded."
        fix = "Check with nvidia-smi (rocm-smi) that no other process uses the device."
        if len(trace.gpu.streams) > 1:
            fix += " Launch from one stream: work on the legacy default stream waits for all others."
    yield Finding(
        title=f"The device is idle {percent(part)} of the time although its next work has been launched",
        confidence="medium",
        stretches=stalls,
        window=window,
        evidence=(
            *evidence(trace, work, times=lengths, note="idle time before it"),
            *evidence(trace, np.unique(waits[waits >= 0]), limit=1),
        ),
        cause=cause,
        fix=fix,
    )


def _first_of_streams(trace: Trace) -> Int32:
    """The first recorded work of each stream."""
    work = trace.links.work
    place = np.stack((devices_of(trace.events, work), streams_of(trace.events, work)))
    found: Int32 = work[np.unique(place, axis=1, return_index=True)[1]]
    return found


def _waits_before(trace: Trace, launches: Int32) -> Int32:
    """For each launch the last call before it on its thread that makes a stream wait, if no launch lies between; -1."""
    events = trace.events
    waits, every = events.of(STREAM_WAIT), trace.links.launches
    found = np.full(len(launches), -1, np.int32)
    for lane in np.unique(events.lane[launches]).tolist():
        mine = np.flatnonzero(events.lane[launches] == lane)
        here, before = waits[events.lane[waits] == lane], every[events.lane[every] == lane]
        if not len(here):
            continue
        at = events.ts[launches[mine]]
        wait = np.searchsorted(events.ts[here], at) - 1
        last = np.searchsorted(events.ts[before], at) - 1
        since = np.where(last >= 0, events.ts[before[np.maximum(last, 0)]], -1)
        after = (wait >= 0) & (events.ts[here[np.maximum(wait, 0)]] > since)
        found[mine[after]] = here[wait[after]]
    return found
