"""Ranks without GPUs, which exchange data through Gloo or MPI."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.collectives import collectives_of
from torchwhy.trace.derived.cpu_communication import idle_exchanging
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["cpu_exposed_comm"]


@rule(
    "F10",
    "cpu-exposed-comm",
    source="annotations of Gloo and MPI (`gloo:all_reduce`) minus operators that compute; 5% of the window",
)
def cpu_exposed_comm(trace: Trace, *, share: float = 0.05) -> Iterator[Finding]:
    """A program without GPU waits for other ranks, or for what they send.

    Sees: the time in collectives of Gloo or MPI during which no operator runs on any recorded thread, in a program
    without GPU, from 5% of the window on.

    Costs: that time on every rank. Part of it may be waiting for a slower rank, which one trace can't tell.

    Fix: fewer exchanges (gradient accumulation under no_sync), larger batches, fewer and fatter ranks with more threads
    each; the traces of all ranks in one folder show who is waited for.

    Known problems: an operator that itself waits inside counts as computing.
    """
    if trace.has_gpu or len(trace.links.launches):
        return
    alone = trace.derived(idle_exchanging)
    part = trace.window.share(alone)
    if not alone.total or part < share:
        return
    rows = np.array([c.row for c in trace.derived(collectives_of)], np.int32)
    start, end = trace.events.ts[rows], np.asarray(trace.events.end[rows])
    done = np.maximum.accumulate(np.append(start[:1], end[:-1]))  # of collectives at one time the first gets it
    spent = alone.overlap(np.minimum(np.maximum(start, done), end), end)
    yield Finding(
        title=f"For {percent(part)} of the time nothing is computed while ranks exchange data",
        confidence="high",
        stretches=alone,
        window=trace.window,
        evidence=evidence(trace, rows, times=spent),
        # The same words whether this rank's trace is read alone or with the others.
        cause="The program needs the result before it can go on; a part may be waiting for a rank that comes late: "
        "with the traces of all ranks in one folder the rule last-rank tells which.",
        fix="Exchange less often: larger batches, or several backward passes under no_sync() for one exchange; "
        "fewer ranks with more threads each.",
        linked=True,
    )
