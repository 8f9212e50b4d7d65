"""Operators by name: `trace.ops()`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from torchfx.profiler.trace.derived.device_time import device_time
from torchfx.profiler.trace.meaning.kinds import Kind
from torchfx.profiler.trace.tables.grouping import Groups, us
from torchfx.profiler.trace.tables.table import Table

if TYPE_CHECKING:
    from torchfx.profiler.trace.model.trace import Trace

__all__ = ["ops"]


def ops(trace: Trace, *, by_shape: bool = False) -> Table:
    """Operators by name, those that cost the host most by themselves first.

    Args:
        by_shape: one row per name and shapes of the inputs (`input_dims`; recorded with record_shapes=True).

    Returns:
        `name`; `calls`; `host_total_us`, with what they called (an operator within one of its own name counts once);
        `host_self_us`, without; `device_total_us` and `device_self_us`: durations of the kernels, copies and fills
        launched in them at any depth, and by themselves; `mean_us` per call on the host.
    """
    events, tree = trace.events, trace.calls
    rows = events.rows(Kind.OPERATOR)
    time = trace.derived(device_time)
    outer = np.zeros(len(events), np.bool_)
    outer[tree.outermost_of_name(rows)] = True
    counted = outer[rows]
    shapes = events.text_ids("Input Dims", rows)
    groups = Groups(events.name[rows], shapes) if by_shape else Groups(events.name[rows])
    first = rows[groups.first].tolist()
    total = us(groups.sum(np.where(counted, events.dur[rows], 0)))
    columns = {"name": [trace.name(row) for row in first]}
    if by_shape:
        columns["input_dims"] = [events.text("Input Dims", row) or "" for row in first]
    return Table(
        {
            **columns,
            "calls": groups.count,
            "host_total_us": total,
            "host_self_us": us(groups.sum(tree.self_time[rows])),
            "device_total_us": us(groups.sum(np.where(counted, time.total[rows], 0))),
            "device_self_us": us(groups.sum(time.own[rows])),
            "mean_us": us(groups.sum(events.dur[rows])) / np.maximum(groups.count, 1),
        }
    ).sorted("host_self_us")
