"""Which row of its thread or stream each event is drawn in, so that no two events of a row overlap."""

from __future__ import annotations

from typing import Final

import numpy as np

from torchwhy.trace.file.columns import Int32, Int64
from torchwhy.trace.model.events import Events
from torchwhy.trace.model.tree import Tree

__all__ = ["NO_ROW", "drawn_rows"]

NO_ROW: Final = -1
"""Stands for the row of an event that overlaps too many others to be drawn."""

_TRIED: Final = 64
"""Rows that are tried for an event that overlaps others without being inside them."""


def drawn_rows(events: Events, tree: Tree) -> Int32:
    """Return the row of each of `tree.rows` within its lane: below the event around it, 0 for outermost events.

    Events that overlap without one being inside the other (concurrent kernels filed under one stream, clocks read in
    microseconds) take the next free row below.
    """
    rows = tree.rows
    lane, start, end = events.lane[rows], events.ts[rows], events.end[rows]
    found = tree.depth[rows].astype(np.int32)
    order = np.lexsort((found, lane))
    before, after = order[:-1], order[1:]
    same = (lane[before] == lane[after]) & (found[before] == found[after])
    clashing = after[same & (start[after] < end[before])]
    if len(clashing):
        place = np.full(len(events) + 1, -1, np.int64)
        place[rows] = np.arange(len(rows))
        above = place[tree.parent[rows]]
        for first, last in _tangles(lane, start, end, clashing):
            found[first:last] = _first_free(start[first:last], end[first:last], above[first:last] - first)
    return found


def _tangles(lane: Int32, start: Int64, end: Int64, clashing: Int64) -> list[tuple[int, int]]:
    """The stretches of events, of those sorted by lane and start, that hang together and have a clash among them."""
    found = []
    for one in np.unique(lane[clashing]).tolist():
        first, last = np.searchsorted(lane, [one, one + 1]).tolist()
        reach = np.maximum.accumulate(end[first:last])
        begins = first + 1 + np.flatnonzero(start[first + 1 : last] >= reach[:-1])
        edges = np.concatenate(([first], begins, [last]))
        touched = np.unique(np.searchsorted(edges, clashing[lane[clashing] == one], "right") - 1)
        found += list(zip(edges[touched].tolist(), edges[touched + 1].tolist(), strict=True))
    return found


def _first_free(start: Int64, end: Int64, above: Int64) -> list[int]:
    """Take the highest row that is free below the event around each, one event after the other."""
    free_from: list[int] = []
    found: list[int] = []
    for begins, ends, parent in zip(start.tolist(), end.tolist(), above.tolist(), strict=True):
        row = found[parent] + 1 if parent >= 0 else 0
        if parent >= 0 and found[parent] == NO_ROW:
            found.append(NO_ROW)
            continue
        last = row + _TRIED
        while row < len(free_from) and free_from[row] > begins and row < last:
            row += 1
        if row == last:
            row = NO_ROW
        elif row == len(free_from):
            free_from.append(ends)
        else:
            free_from[row] = ends
        found.append(row)
    return found
