"""Activity of a thread over time: the innermost call at each moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from torchwhy.trace.file.columns import Int32, Int64

if TYPE_CHECKING:
    from torchwhy.trace.model.events import Events
    from torchwhy.trace.model.tree import Tree

__all__ = ["HostTimeline"]


@dataclass(frozen=True)
class HostTimeline:
    """The innermost event of one thread from one change to the next.

    Attributes:
        times: when it changes, ascending, nanoseconds.
        rows: the innermost event from then on; -1 where none is recorded.
    """

    times: Int64
    rows: Int32

    @classmethod
    def of(cls, events: Events, tree: Tree, lane: int) -> HostTimeline:
        """Follow one thread. What crosses another event instead of lying in it cuts that one off."""
        mine = tree.rows[events.lane[tree.rows] == lane]
        start, end, parent = events.ts[mine], events.end[mine], tree.parent[mine]
        within = np.where(parent >= 0, events.end[parent], end)
        behind = np.arange(1, len(mine) + 1) + tree.sizes[mine]
        next_start = np.append(start, np.iinfo(np.int64).max)[behind]
        end = np.minimum(np.minimum(end, within), next_start)
        lasting = np.flatnonzero(end > start)
        count = len(lasting)
        times = np.concatenate((end[lasting], start[lasting]))
        begins = np.repeat([0, 1], count)  # at equal times ends come first, inner ones before outer ones
        order = np.lexsort((np.concatenate((-lasting, lasting)), begins, times))
        rows = np.concatenate((parent[lasting], mine[lasting]))[order]
        times = times[order]
        last = np.append(times[1:] != times[:-1], True)[: len(times)]
        return cls(times[last], rows[last].astype(np.int32))

    def at(self, moments: Int64) -> Int32:
        """The innermost event at each moment, or -1."""
        i = np.searchsorted(self.times, moments, "right") - 1
        found = np.full(len(moments), -1, np.int32)
        found[i >= 0] = self.rows[i[i >= 0]]
        return found

    def pieces(self, starts: Int64, ends: Int64) -> tuple[Int64, Int32, Int64, Int64]:
        """Cut stretches of time where the innermost event changes.

        Returns:
            For each piece: the stretch it is of, the event (-1 for none), its start and its end.
        """
        first = np.searchsorted(self.times, starts, "right") - 1
        last = np.searchsorted(self.times, ends, "left")
        count = np.maximum(last - first, 1)
        which = np.repeat(np.arange(len(starts)), count)
        i = np.repeat(first, count) + np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
        edges = np.concatenate(([np.iinfo(np.int64).min], self.times, [np.iinfo(np.int64).max]))
        rows = np.concatenate((np.array([-1], np.int32), self.rows))[i + 1]
        return which, rows, np.maximum(edges[i + 1], starts[which]), np.minimum(edges[i + 2], ends[which])
