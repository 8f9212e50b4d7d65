"""The device's time by who on the host asked for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from torchfx.profiler.trace.file.columns import Int32, Int64
from torchfx.profiler.trace.model.kinds import Kind

if TYPE_CHECKING:
    from torchfx.profiler.trace.model.trace import Trace

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
    """Add up device work per host event; `trace.derived(device_time)` computes it once.

    The launch is found by correlation. Where it isn't in the trace, or no operator is around it, the operator with the
    work's `External id` takes its place.
    """
    events, tree, links = trace.events, trace.calls, trace.links
    count, launch = len(events), links.launch
    innermost = tree.nearest(events.kind == Kind.OPERATOR)
    operator = np.where(launch >= 0, innermost[launch] if count else launch, np.int32(-1)).astype(np.int32)
    alone = np.flatnonzero(operator < 0)
    operator[alone] = _by_external_id(trace, links.work[alone])
    place = np.where((launch >= 0) & ~np.isin(np.arange(len(launch)), alone), launch, operator)
    place = np.where(place >= 0, place, launch)
    spent = events.dur[links.work]
    placed = _sum_at(place, spent, count)
    return DeviceTime(placed, tree.sums(placed), _sum_at(operator, spent, count), operator)


def _sum_at(rows: Int32, amounts: Int64, count: int) -> Int64:
    there = rows >= 0
    found: Int64 = np.bincount(rows[there], weights=amounts[there], minlength=count).astype(np.int64)
    return found


def _by_external_id(trace: Trace, work: Int32) -> Int32:
    """The operator with the id each piece of work names, or -1."""
    events, missing = trace.events, np.full(len(work), -1, np.int32)
    if not len(work):
        return missing
    operators = events.rows(Kind.OPERATOR)
    ids = events.integers("External id", operators)
    operators, ids = operators[ids > 0], ids[ids > 0]
    if not len(ids):
        return missing
    order = np.argsort(ids, kind="stable")
    operators, ids = operators[order], ids[order]
    wanted = events.integers("External id", work)
    i = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return np.where(ids[i] == wanted, operators[i], missing).astype(np.int32)
