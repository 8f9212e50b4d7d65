"""Who called whom on each thread, found from the times alone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Final

import numpy as np

from torchfx.profiler.trace.columns import Int32, Int64
from torchfx.profiler.trace.events import Events
from torchfx.profiler.trace.kinds import Kind

__all__ = ["BLEED", "Tree"]

BLEED: Final = 1000
"""A child may end so many nanoseconds after its parent: clocks were once read in whole microseconds."""


class Tree:
    """The nesting of host events: row -> the row of the innermost event around it on its thread.

    Attributes:
        rows: the events in it, by thread, then by start, parents before children.
        parent: one entry per row of the trace; -1 for outermost events and for rows that aren't in the tree.
    """

    def __init__(self, events: Events, *kinds: Kind) -> None:
        self._events = events
        rows = events.rows(*kinds)
        rows = rows[np.argsort(events.lane[rows], kind="stable")]
        self.rows: Int32 = rows
        self.parent: Int32 = np.full(len(events), -1, np.int32)
        if len(rows):
            above = _above(events.lane[rows], events.ts[rows], events.end[rows])
            self.parent[rows] = np.where(above >= 0, rows[np.maximum(above, 0)], -1)

    def ancestors(self, row: int) -> Iterator[int]:
        """The events around one, from the innermost."""
        row = int(self.parent[row])
        while row >= 0:
            yield row
            row = int(self.parent[row])

    def outermost(self, row: int, *kinds: Kind) -> int:
        """The outermost event of these kinds around a row, or the row itself."""
        found = row
        for above in self.ancestors(row):
            if not kinds or self._events.kind[above] in kinds:
                found = above
        return found

    def children(self, row: int) -> Int32:
        """The events directly inside one, by start."""
        low, high = np.searchsorted(self._parents_sorted, [row, row + 1])
        found: Int32 = self._by_parent[low:high]
        return found

    def inside(self, row: int) -> Int32:
        """All events inside one, at any depth: in tree order."""
        place = int(self._place[row])
        if place < 0:
            return np.empty(0, np.int32)
        found: Int32 = self.rows[place + 1 : place + 1 + int(self.sizes[row])]
        return found

    @cached_property
    def depth(self) -> Int32:
        """How many events are around each row; 0 for outermost ones."""
        depth = (self.parent >= 0).astype(np.int32)
        rows, above = self.rows, self.parent.copy()
        while len(rows := rows[above[rows] >= 0]):  # twice as far in each round
            target = above[rows]
            depth[rows], above[rows] = depth[rows] + depth[target], above[target]
        return depth

    @cached_property
    def sizes(self) -> Int32:
        """How many events are inside each row, at any depth."""
        sizes = np.zeros(len(self.parent), np.int32)
        level = self.depth[self.rows]
        order = self.rows[np.argsort(level, kind="stable")]
        ends = np.cumsum(np.bincount(level)) if len(level) else []
        for start, end in reversed(list(zip(ends[:-1], ends[1:], strict=True))):
            np.add.at(sizes, self.parent[order[start:end]], sizes[order[start:end]] + 1)
        return sizes

    @cached_property
    def self_time(self) -> Int64:
        """Duration without the children's, nanoseconds; 0 for rows that aren't in the tree."""
        events, own = self._events, np.zeros(len(self.parent), np.int64)
        own[self.rows] = events.dur[self.rows]
        inner = self.rows[self.parent[self.rows] >= 0]
        above = self.parent[inner]
        inside = np.minimum(events.end[inner], events.end[above]) - events.ts[inner]
        np.subtract.at(own, above, inside)
        return np.maximum(own, 0)

    @cached_property
    def _by_parent(self) -> Int32:
        found: Int32 = self.rows[np.argsort(self.parent[self.rows], kind="stable")]
        return found

    @cached_property
    def _parents_sorted(self) -> Int32:
        found: Int32 = self.parent[self._by_parent]
        return found

    @cached_property
    def _place(self) -> Int32:
        place = np.full(len(self.parent), -1, np.int32)
        place[self.rows] = np.arange(len(self.rows), dtype=np.int32)
        return place


def _above(lane: Int32, start: Int64, end: Int64) -> Int64:
    """For events sorted by lane, start and falling length: the position of the innermost one around each, or -1.

    The one before is the first guess. Where it doesn't reach around, neither does anything it reached past, so its own
    guess is the next one to try: all events jump at once, over twice the distance each time.
    """
    guess = np.arange(-1, len(start) - 1, dtype=np.int64)
    open_ = np.arange(len(start), dtype=np.int64)
    while len(open_):
        other = guess[open_]
        candidate = np.maximum(other, 0)
        elsewhere = (other < 0) | (lane[candidate] != lane[open_])
        guess[open_[elsewhere]] = -1
        open_, candidate = open_[~elsewhere], candidate[~elsewhere]
        # An event of no length belongs to one that ends where it stands only if that one began before.
        past = (end[candidate] + BLEED < end[open_]) | (end[candidate] <= start[open_])
        open_, candidate = open_[past], candidate[past]
        guess[open_] = guess[candidate]
    return guess
