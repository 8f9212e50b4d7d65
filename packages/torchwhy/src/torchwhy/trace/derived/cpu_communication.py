"""Programs on processors that exchange data through Gloo or MPI: when they compute, and when they only exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from torchwhy.trace.derived.collectives import collectives_of
from torchwhy.trace.meaning.communication import COMMUNICATION_CALL, DEVICE_COLLECTIVE, EXCHANGE
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.model.intervals import Intervals

if TYPE_CHECKING:
    from torchwhy.trace.model.trace import Trace

__all__ = ["idle_exchanging", "operators_computing"]


def operators_computing(trace: Trace) -> Intervals:
    """When a thread was in an operator and not in one that exchanges data.

    A backward node with a collective inside it doesn't compute while it waits there.
    """
    events = trace.events
    rows = events.rows(Kind.OPERATOR)
    calls = rows[events.are(COMMUNICATION_CALL, rows)]
    own = rows[~events.are(EXCHANGE, rows)]
    found = Intervals.union([], [])
    blocked = np.unique(events.lane[calls]).tolist() if len(calls) else []
    free = own[~np.isin(events.lane[own], blocked)] if blocked else own
    found = found | events.times_of(free)
    for lane in blocked:
        here, waits = own[events.lane[own] == lane], calls[events.lane[calls] == lane]
        computes = events.times_of(here)
        found = found | (computes - events.times_of(waits))
    return found


def idle_exchanging(trace: Trace) -> Intervals:
    """When a collective ran on the processor and no thread computed anything, within the window.

    What a device's library announces on the host is only its launch.
    """
    events = trace.events
    rows = np.array([c.row for c in trace.derived(collectives_of)], np.int32)
    rows = rows[~events.are(DEVICE_COLLECTIVE, rows)]
    alone = events.times_of(rows) - trace.derived(operators_computing)
    return alone.clip(trace.window.start, trace.window.end)
