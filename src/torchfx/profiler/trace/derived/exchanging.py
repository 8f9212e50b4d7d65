"""Programs on processors that exchange data through Gloo or MPI: when they compute, and when they only exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from torchfx.profiler.trace.derived.collectives import ANNOTATION, RECORD, collectives_of
from torchfx.profiler.trace.model.intervals import Intervals
from torchfx.profiler.trace.model.kinds import Kind

if TYPE_CHECKING:
    from torchfx.profiler.trace.model.trace import Trace

__all__ = ["EXCHANGING", "idle_exchanging", "operators_computing"]

_CALLS: Final = r"_?c10d(_functional)?(_autograd)?::"
_DEVICE: Final = r"(nccl|rccl|xccl|hccl):"
EXCHANGING: Final = rf"{ANNOTATION}|{RECORD}|{_CALLS}"
"""Operators that send, receive, or wait for what is sent."""


def operators_computing(trace: Trace) -> Intervals:
    """When a thread was in an operator and not in one that exchanges data.

    A backward node with a collective inside it doesn't compute while it waits there.
    """
    events = trace.events
    rows = events.rows(Kind.OPERATOR)
    calls = rows[events.names_matching(_CALLS)[events.name[rows]]]
    own = rows[~events.names_matching(EXCHANGING)[events.name[rows]]]
    found = Intervals.union([], [])
    blocked = np.unique(events.lane[calls]).tolist() if len(calls) else []
    free = own[~np.isin(events.lane[own], blocked)] if blocked else own
    found = found | Intervals.union(events.ts[free], events.end[free])
    for lane in blocked:
        here, waits = own[events.lane[own] == lane], calls[events.lane[calls] == lane]
        computes = Intervals.union(events.ts[here], events.end[here])
        found = found | (computes - Intervals.union(events.ts[waits], events.end[waits]))
    return found


def idle_exchanging(trace: Trace) -> Intervals:
    """When a collective ran on the processor and no thread computed anything, within the window.

    What a device's library announces on the host is only its launch.
    """
    events = trace.events
    rows = np.array([c.row for c in trace.derived(collectives_of)], np.int32)
    rows = rows[~events.names_matching(_DEVICE)[events.name[rows]]]
    alone = Intervals.union(events.ts[rows], events.end[rows]) - trace.derived(operators_computing)
    return alone.clip(trace.window.start, trace.window.end)
