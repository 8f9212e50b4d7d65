"""Calls that put work on a device: `trace.launches()`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from torchwhy.trace.derived.launches import launch_queues
from torchwhy.trace.file.columns import Int64
from torchwhy.trace.tables.grouping import Groups, us
from torchwhy.trace.tables.table import Table

if TYPE_CHECKING:
    from torchwhy.trace.model.trace import Trace

__all__ = ["launches"]


def launches(trace: Trace) -> Table:
    """Return the calls that launched kernels, graphs, copies and fills by name, sorted by time.

    Returns:
        `name`; `calls`; `work`: number of device events that they launched; `total_us` and `median_us` of the calls
        themselves; `delay_us`: median time from the beginning of the call to the beginning of its (first) work;
        `queue_median` and `queue_max`: how many earlier launches of the same stream hadn't begun when it was made (0:
        the device had nothing waiting). Values that need device work are NaN where none was recorded.
    """
    events, links = trace.events, trace.links
    put = np.flatnonzero(links.work_count > 0).astype(np.int32)
    rows = np.union1d(links.launches, put).astype(np.int32)
    delay, depth = _delay(trace), _depth(trace)
    groups = Groups(events.name[rows])
    first = rows[groups.first].tolist()
    middle = []
    for group in groups.members():
        mine = rows[group]
        started, queued = delay[mine], depth[mine]
        started, queued = started[started != _UNKNOWN], queued[queued >= 0]
        middle.append(
            (
                float(np.median(started)) / 1000 if len(started) else float("nan"),
                float(np.median(queued)) if len(queued) else float("nan"),
                float(queued.max()) if len(queued) else float("nan"),
            )
        )
    return Table(
        {
            "name": [trace.name(row) for row in first],
            "calls": groups.count,
            "work": groups.sum(links.work_count[rows]),
            "total_us": us(groups.sum(events.dur[rows])),
            "median_us": groups.median(events.dur[rows]) / 1000,
            "delay_us": np.array([m[0] for m in middle]),
            "queue_median": np.array([m[1] for m in middle]),
            "queue_max": np.array([m[2] for m in middle]),
        }
    ).sorted("total_us")


_UNKNOWN = np.iinfo(np.int64).min


def _delay(trace: Trace) -> Int64:
    """For every row: from its start to the start of the first work it put on a device."""
    events, links = trace.events, trace.links
    found = np.full(len(events), _UNKNOWN, np.int64)
    known = links.launch >= 0
    work, launch = links.work[known][::-1], links.launch[known][::-1]  # work is by start: the first is written last
    found[launch] = events.ts[work] - events.ts[launch]
    return found


def _depth(trace: Trace) -> Int64:
    """For every row: the longest queue of a stream it launched on, or -1."""
    found = np.full(len(trace.events), -1, np.int64)
    for queue in trace.derived(launch_queues):
        found[queue.launches] = np.maximum(found[queue.launches], queue.depth)
    return found
