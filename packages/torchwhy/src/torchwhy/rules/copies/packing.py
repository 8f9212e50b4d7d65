"""Many small copies where one would do."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.copies.transfers import transfers
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["many_tiny_copies"]


@rule(
    "C11",
    "many-tiny-copies",
    source="20 adjacent copies below 64 KB, as in ROCm's profiler guide",
    needs={"gpu"},
    frees="exposed",
)
def many_tiny_copies(
    trace: Trace, *, run: float = 20, largest: float = 65536, share: float = 0.005
) -> Iterator[Finding]:
    """Many small copies follow each other.

    Sees: 20 or more copies of less than 64 kB one after another in one direction, with no kernel launched in between.

    Costs: each has its call and its latency, several microseconds for a few bytes.

    Fix: pack the fields into one tensor on the host, copy that, and split it on the device.

    Known problems: copies of sparse structures or of many parameters at start-up look the same; they happen once.
    """
    events, copies = trace.events, trace.derived(transfers)
    issued = events.rows(Kind.RUNTIME)
    issued = issued[(trace.links.work_count[issued] > 0) & trace.in_steps(issued)]
    place = np.zeros(len(events) + 1, np.int32)  # from 1
    place[issued] = np.arange(1, len(issued) + 1)
    found: list[Int32] = []
    for way in ("HtoD", "DtoH"):
        small = copies.way(way) & (copies.bytes < largest) & (copies.bytes > 0) & (copies.launch >= 0)
        at = np.flatnonzero(small)
        order = np.sort(place[copies.launch[at]]) - 1
        order = order[order >= 0]
        ends = np.flatnonzero(np.diff(order, append=-2) != 1)
        starts = np.concatenate(([0], ends[:-1] + 1)) if len(ends) else ends
        for a, b in zip(starts.tolist(), ends.tolist(), strict=True):
            if b - a + 1 >= run:
                found.append(issued[order[a] : order[b] + 1])
    if not found:
        return
    spans = Intervals.union([events.ts[rows[0]] for rows in found], [events.end[rows[-1]] for rows in found])
    computing = trace.gpu.compute | trace.gpu.communication
    alone = spans.clip(trace.window.start, trace.window.end) - computing
    part = trace.window.share(alone)
    if part < share:
        return
    count = sum(map(len, found))
    yield Finding(
        title=f"{count} small copies one after another take {percent(part)} of the time while nothing is computed",
        confidence="medium",
        stretches=alone,
        window=trace.window,
        evidence=evidence(trace, np.concatenate(found)),
        cause="Each field of a structure is copied by itself; the call costs more than the bytes.",
        fix="Pack the fields into one tensor before the copy, and take views of it on the device.",
        linked=True,
    )
