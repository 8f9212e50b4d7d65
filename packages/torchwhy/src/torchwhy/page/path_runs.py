"""The critical path as runs: stretches during which it stays on one thread or stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from torchwhy.trace.derived.critical import critical_segments
from torchwhy.trace.file.columns import Int32, Int64

if TYPE_CHECKING:
    from torchwhy.trace.model.trace import Trace

__all__ = ["PathRuns", "path_runs"]


@dataclass(frozen=True)
class PathRuns:
    """Runs of the critical path in order of time.

    Attributes:
        start, end: nanoseconds from the trace's beginning.
        event: one event of the lane the path is on, or -1 where it waits for a device to begin.
    """

    start: Int64
    end: Int64
    event: Int32


def path_runs(trace: Trace, position: Int32) -> PathRuns:
    """Join the pieces of the path that follow each other on one thread or stream.

    Args:
        trace: the trace.
        position: for each of its rows the event of the page, or -1.
    """
    found = trace.derived(critical_segments)
    if not len(found):
        none = np.empty(0, np.int64)
        return PathRuns(none, none, none.astype(np.int32))
    lane = np.where(found.row >= 0, trace.events.lane[found.row], found.lane)
    first = np.flatnonzero(np.concatenate(([True], lane[1:] != lane[:-1])))
    last = np.append(first[1:], len(lane)) - 1
    event = np.full(len(first), -1, np.int32)
    which = np.cumsum(np.concatenate(([True], lane[1:] != lane[:-1]))) - 1
    there = np.flatnonzero(position[found.row] >= 0)[::-1]  # the first of a run is written last
    event[which[there]] = position[found.row[there]]
    return PathRuns(found.starts[first] - trace.beginning, found.ends[last] - trace.beginning, event)
