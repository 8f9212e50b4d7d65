"""The device's time by the host's call that launched it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from torchwhy.trace.derived.ownership import launching_operators, operators_of_work
from torchwhy.trace.file.columns import Int32, Int64

if TYPE_CHECKING:
    from torchwhy.trace.model.trace import Trace

__all__ = ["DeviceTime", "device_time"]


@dataclass(frozen=True)
class DeviceTime:
    """Durations of device work, added up per host event; one entry per row of the trace, nanoseconds.

    They are sums: work that ran at the same time on two streams counts twice.

    Attributes:
        placed: of the work each call put on the device itself (mostly at runtime calls).
        total: of the work launched in each operator, annotation or runtime call, at any depth.
        own: of the work whose innermost operator each is.
        operator: for each of `links.work` the innermost operator around its launch, or -1.
    """

    placed: Int64
    total: Int64
    own: Int64
    operator: Int32


def device_time(trace: Trace) -> DeviceTime:
    """Add up device work per host event; `trace.derived(device_time)` computes it once."""
    events, tree, links = trace.events, trace.calls, trace.links
    count, maker = len(events), links.maker
    operator = trace.derived(operators_of_work)
    place = np.where(trace.derived(launching_operators) >= 0, maker, np.where(operator >= 0, operator, maker))
    spent = events.dur[links.work]
    placed = _sum_at(place, spent, count)
    return DeviceTime(placed, tree.sums(placed), _sum_at(operator, spent, count), operator)


def _sum_at(rows: Int32, amounts: Int64, count: int) -> Int64:
    there = rows >= 0
    found = np.zeros(count, np.int64)
    np.add.at(found, rows[there], amounts[there])
    return found
