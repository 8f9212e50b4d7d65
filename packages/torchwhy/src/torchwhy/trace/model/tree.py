"""Who called whom on each thread, found from the times alone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Final

import numpy as np

from torchwhy.trace.file.columns import Flags, Int32, Int64
from torchwhy.trace.meaning.kinds import Kind, Meaning
from torchwhy.trace.model import nesting as nesting_plain
from torchwhy.trace.model import nesting_native
from torchwhy.trace.model.captured import Nested
from torchwhy.trace.model.events import Events

__all__ = ["BLEED", "Tree"]

nesting = nesting_native if nesting_native.available() else nesting_plain

BLEED: Final = 1000
"""A child may end at most this long after its parent (ns): clocks were once read in whole microseconds."""


class Tree:
    """The nesting of host events: row -> the row of the innermost event around it on its thread.

    Args:
        events: of one trace.
        kinds: of the events in the tree.
        without: events that stay outside of it.
        borrowed: nested rows of another recording.

    Attributes:
        rows: the events of the trace in it, by thread, then by start, parents before children.
        nested: these and the borrowed ones, in the same order.
        parent: one entry per row of the trace; -1 for outermost events and for rows that aren't in the tree.
    """

    def __init__(
        self, events: Events, *kinds: Kind, without: Meaning | None = None, borrowed: Nested | None = None
    ) -> None:
        self._events = events
        rows = events.rows(*kinds)
        if without is not None:
            rows = rows[~events.are(without, rows)]
        if len(rows) and len(events.lanes) > 1:
            small = np.uint16 if len(events.lanes) <= 1 << 16 else np.int32  # numpy sorts 16 bits in linear time
            rows = rows[np.argsort(events.lane[rows].astype(small), kind="stable")]
        self.rows: Int32 = rows
        self.nested: Int32 = rows if borrowed is None else self._with(borrowed)
        self.parent: Int32 = nesting.parents(rows, events.lane, events.ts, events.end, BLEED)
        if borrowed is not None:
            self.parent[borrowed.rows] = borrowed.parent

    def _with(self, borrowed: Nested) -> Int32:
        if borrowed.within is None:
            return np.concatenate((self.rows, borrowed.rows))
        place = np.zeros(len(self._events), np.int64)
        place[self.rows] = np.arange(1, len(self.rows) + 1)
        found: Int32 = np.insert(self.rows, place[borrowed.within], borrowed.rows)
        return found

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
        """The events of the trace directly inside one, by start."""
        low, high = np.searchsorted(self._parents_sorted, np.array([row, row + 1], np.int32))  # of one type: no copy
        found: Int32 = self._by_parent[low:high]
        return found

    def inside(self, row: int) -> Int32:
        """All events of the trace inside one, at any depth: in tree order."""
        place = int(self._place[row])
        if place < 0:
            return np.empty(0, np.int32)
        found: Int32 = self.nested[place + 1 : place + 1 + int(self.sizes[row])]
        return found[found < self._events.recorded]

    @cached_property
    def depth(self) -> Int32:
        """How many events are around each row; 0 for outermost ones."""
        found: Int32 = nesting.around(self.nested, self.parent)
        return found

    @cached_property
    def sizes(self) -> Int32:
        """How many events are inside each row, at any depth."""
        found: Int32 = nesting.inside(self.nested, self.parent)
        return found

    @cached_property
    def self_time(self) -> Int64:
        """Duration without the children's, nanoseconds; 0 for rows that aren't in the tree."""
        events, own = self._events, np.zeros(len(self.parent), np.int64)
        own[self.nested] = events.dur[self.nested]
        inner = self.nested[self.parent[self.nested] >= 0]
        above = self.parent[inner]
        inside = np.minimum(events.end[inner], events.end[above]) - events.ts[inner]
        np.subtract.at(own, above, inside)
        found: Int64 = np.maximum(own, 0)
        return found

    def nearest(self, wanted: Flags) -> Int32:
        """For every row of the trace, the innermost wanted event around it, itself included, or -1.

        Args:
            wanted: one flag per row of the trace; rows outside the tree never count.
        """
        found: Int32 = nesting.nearest(self.nested, self.parent, wanted)
        return found

    def within(self, rows: Int32, outer: Int32) -> Flags:
        """Which of some rows are, or lie at any depth inside, one of others."""
        begin = np.sort(self._place[outer])
        begin = begin[np.searchsorted(begin, 0) :]  # -1 is outside of the tree
        reach = np.append(np.maximum.accumulate(begin + self.sizes[self.nested[begin]]), -1)  # the last: of no outer
        place = self._place[rows]
        found: Flags = (place >= 0) & (place <= reach[np.searchsorted(begin, place, "right") - 1])
        return found

    def sums(self, amounts: Int64) -> Int64:
        """For every row in the tree, the amounts of itself and of everything inside it; 0 elsewhere.

        Args:
            amounts: one number per row of the trace.
        """
        before = np.concatenate(([0], np.cumsum(amounts[self.nested])))
        found = np.zeros(len(self.parent), np.int64)
        behind = np.arange(1, len(before)) + self.sizes[self.nested]
        found[self.nested] = before[behind] - before[:-1]
        return found

    def outermost_of_name(self, rows: Int32) -> Int32:
        """The rows that aren't inside another of these rows with the same name."""
        rows = rows[self._place[rows] >= 0]
        place, name = self._place[rows].astype(np.int64), self._events.name[rows].astype(np.int64)
        order = np.lexsort((place, name))
        rows, place, name = rows[order], place[order], name[order]
        if not len(rows):
            return rows
        # The furthest that any earlier one of the name reaches; names come one after another, so none mixes in.
        base = (name - name.min()) * (len(self.nested) + 1)
        reach = np.maximum.accumulate(base + place + self.sizes[rows])
        fresh = np.concatenate(([True], base[1:] + place[1:] > reach[:-1]))
        found: Int32 = np.sort(rows[fresh])
        return found

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
        place[self.nested] = np.arange(len(self.nested), dtype=np.int32)
        return place
