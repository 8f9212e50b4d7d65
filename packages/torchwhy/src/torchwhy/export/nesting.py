"""Makes the events of a thread or stream nest, as viewers want them: one inside another, or one after another."""

from __future__ import annotations

import sys

import numpy as np

from torchwhy.trace.file.columns import Int32, Int64
from torchwhy.trace.model.tree import BLEED

__all__ = ["nested"]


def nested(start: Int64, end: Int64, *, one_row: bool) -> tuple[Int64, Int32]:
    """Return where each event ends, and in which row it stands, so that the events of each row nest.

    Of two events that overlap only partly, one is to end earlier: the first where the second begins, or the second
    where the first ends, whichever loses less. Clocks that were read in whole microseconds overlap by up to one. Where
    it is more, the second event goes to a further row instead, if there is one.

    Args:
        start: nanoseconds, ascending; of equal starts the longer event first.
        end: nanoseconds.
        one_row: whether there is no further row.

    >>> kernels = np.array([0, 5000, 6000]), np.array([10_000, 20_000, 9000])
    >>> nested(*kernels, one_row=False)
    (array([10000, 20000,  9000]), array([0, 1, 0], dtype=int32))
    >>> nested(*kernels, one_row=True)
    (array([ 5000, 20000,  9000]), array([0, 0, 0], dtype=int32))
    """
    ends, row = end.tolist(), np.zeros(len(start), np.int32)
    most = sys.maxsize if one_row else BLEED
    open_: list[list[int]] = [[]]  # the events around the current moment, in each row from the outermost
    for i, begins in enumerate(start.tolist()):
        number = next((n for n, around in enumerate(open_) if _fits(begins, i, around, ends, most)), len(open_))
        if number == len(open_):
            open_.append([])
        open_[number].append(i)
        row[i] = number
    return np.array(ends, np.int64), row


def _fits(begins: int, i: int, around: list[int], ends: list[int], most: int) -> bool:
    """Whether an event nests with those open in a row, after an end was moved by at most this number of nanoseconds."""
    while around:
        outer = around[-1]
        after, before = ends[i] - ends[outer], ends[outer] - begins
        if before <= 0:
            around.pop()
        elif after <= 0:
            return True
        elif min(after, before) > most:
            return False
        elif after <= before:
            ends[i] = ends[outer]
        else:
            ends[outer] = begins
    return True
