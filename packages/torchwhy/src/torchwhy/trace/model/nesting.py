"""Who called whom, from the times of events alone. `nesting_native` is the same in one pass over the events.

Rows are places in columns with an entry for each event; they come with each parent before its children.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from torchwhy.trace.file.columns import Flags, Int32, Int64

__all__ = ["around", "inside", "nearest", "parents"]

PEELED: Final = 3
"""Levels of nesting that are looked for one by one before all that is left is searched at once."""


def parents(rows: Int32, lane: Int32, start: Int64, end: Int64, bleed: int) -> Int32:
    """For each event the row of the innermost one around it on its lane, or -1; -1 for events that aren't in `rows`.

    An event of no length belongs to one that ends where it stands only if that one began before.

    Args:
        rows: sorted by lane, then by start; of equal starts the outer event comes first.
        lane, start, end: of all events; nanoseconds.
        bleed: how much later than the surrounding event an event may end, nanoseconds.
    """
    found = np.full(len(lane), -1, np.int32)
    above = _above(lane[rows], start[rows], end[rows], bleed)
    inner = np.flatnonzero(above >= 0)
    found[rows[inner]] = rows[above[inner]]
    return found


def nearest(rows: Int32, parent: Int32, wanted: Flags) -> Int32:
    """For each of the rows the innermost wanted event around it, itself included, or -1.

    Args:
        rows, parent: of a tree; `parent` has an entry for each event.
        wanted: a flag for each event.
    """
    found = np.full(len(parent), -1, np.int32)
    found[rows] = np.where(wanted[rows], rows, parent[rows])
    settled = np.zeros(len(found) + 1, np.bool_)  # the last entry answers for -1
    settled[rows] = wanted[rows]
    settled[-1] = True
    open_ = rows[~settled[found[rows]]]
    while len(open_):  # all jump at once, over twice the distance each time
        found[open_] = found[found[open_]]
        open_ = open_[~settled[found[open_]]]
    return found


def around(rows: Int32, parent: Int32) -> Int32:
    """How many events are around each of the rows; 0 for other events."""
    found = (parent >= 0).astype(np.int32)
    above = parent.copy()
    while len(rows := rows[above[rows] >= 0]):  # twice as far in each round
        target = above[rows]
        found[rows], above[rows] = found[rows] + found[target], above[target]
    return found


def inside(rows: Int32, parent: Int32) -> Int32:
    """How many events are inside each of the rows, at any depth; 0 for other events."""
    found = np.zeros(len(parent), np.int32)
    among, above = rows, parent.copy()
    count = np.zeros(len(parent), np.int64)
    count[rows] = 1
    while len(rows := rows[above[rows] >= 0]):  # counted over twice as many generations in each round
        count += np.bincount(above[rows], weights=count[rows], minlength=len(count)).astype(np.int64)
        above[rows] = above[above[rows]]
    found[among] = count[among] - 1
    return found


def _above(lane: Int32, start: Int64, end: Int64, bleed: int) -> Int64:
    """For events sorted by lane, start and falling length: the position of the innermost one around each, or -1.

    The one before is the first guess. Where it doesn't reach around, neither does anything it reached past, so its own
    guess is the next one to try: all events jump at once, over twice the distance each time.
    """
    guess = np.arange(-1, len(start) - 1, dtype=np.int64)
    _shorten(guess, lane, start, end)
    open_ = np.flatnonzero(guess >= 0)
    while len(open_):
        other = guess[open_]
        candidate = np.maximum(other, 0)
        elsewhere = (other < 0) | (lane[candidate] != lane[open_])
        guess[open_[elsewhere]] = -1
        open_, candidate = open_[~elsewhere], candidate[~elsewhere]
        past = (end[candidate] + bleed < end[open_]) | (end[candidate] <= start[open_])
        open_, candidate = open_[past], candidate[past]
        guess[open_] = guess[candidate]
    return guess


def _shorten(guess: Int64, lane: Int32, start: Int64, end: Int64) -> None:
    """Make better first guesses for long rows of events one after another, as under the annotation of a loop.

    Where nothing before in its group reaches beyond the start of an event, nothing but the group's owner can be around
    it. What is left belongs to the groups of those found so. The groups at first are the lanes, without an owner.
    """
    if not len(start):
        return
    rows, owner = np.arange(len(start)), np.full(len(start), -1)
    begins = np.concatenate(([True], lane[1:] != lane[:-1]))
    low, span = int(start.min()), int(end.max()) - int(start.min()) + 1
    for _ in range(PEELED):
        group = np.cumsum(begins) - 1
        if not len(rows) or (int(group[-1]) + 1) * span > np.iinfo(np.int64).max:
            return
        before = group * span - low  # sets each group's times after those of the group before
        reach = np.maximum.accumulate(before + end[rows])
        alone = np.concatenate(([True], reach[:-1] <= (before + start[rows])[1:]))
        guess[rows[alone]] = owner[alone]
        last = np.maximum.accumulate(np.where(alone, np.arange(len(rows)), 0))
        rows, owner = rows[~alone], rows[last][~alone]
        begins = np.concatenate(([True], owner[1:] != owner[:-1]))[: len(rows)]
