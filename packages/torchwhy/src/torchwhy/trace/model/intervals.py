"""Stretches of time in integer nanoseconds: unions, differences, shares of a window."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from torchwhy.trace.file.columns import Int64

__all__ = ["Intervals", "Window"]


@dataclass(frozen=True)
class Intervals:
    """Sorted, disjoint, non-empty stretches [start, end) of time.

    Built with `Intervals.union(starts, ends)`. `a | b`, `a & b` and `a - b` are the set operations.

    >>> busy = Intervals.union([0, 3, 10], [4, 6, 12])
    >>> busy
    Intervals([0, 6), [10, 12))
    >>> busy.total, busy.gaps().total
    (8, 4)
    >>> busy.overlap([5, 0], [11, 100]).tolist()
    [2, 8]
    """

    starts: Int64
    ends: Int64

    @classmethod
    def union(cls, starts: npt.ArrayLike, ends: npt.ArrayLike) -> Intervals:
        """Merge stretches that overlap or touch; empty and backward ones vanish.

        Args:
            starts, ends: nanoseconds, in any order.
        """
        start, end = np.asarray(starts, np.int64), np.asarray(ends, np.int64)
        proper = end > start
        if not proper.all():
            start, end = start[proper], end[proper]
        if not len(start):
            return NOTHING
        order = np.argsort(start, kind="stable")
        start, reach = start[order], np.maximum.accumulate(end[order])
        fresh = np.flatnonzero(start[1:] > reach[:-1]) + 1
        return cls(start[np.concatenate(([0], fresh))], reach[np.concatenate((fresh - 1, [len(start) - 1]))])

    @property
    def total(self) -> int:
        """Their lengths together, nanoseconds."""
        return int((self.ends - self.starts).sum())

    @property
    def lengths(self) -> Int64:
        """The length of each, nanoseconds."""
        return self.ends - self.starts

    @property
    def longest_start(self) -> int:
        """When the longest begins, the first of equal ones; a ValueError if there is no interval."""
        return int(self.starts[int(self.lengths.argmax())])

    def gaps(self) -> Intervals:
        """Return the time between them."""
        return Intervals(self.ends[:-1], self.starts[1:])

    def clip(self, start: int, end: int) -> Intervals:
        """Keep the parts within [start, end)."""
        if end <= start:
            return NOTHING
        first, last = np.searchsorted(self.ends, start, "right"), np.searchsorted(self.starts, end, "left")
        if first >= last:
            return NOTHING
        return Intervals(
            np.maximum(self.starts[first:last], np.int64(start)), np.minimum(self.ends[first:last], np.int64(end))
        )

    def covered_before(self, times: npt.ArrayLike) -> Int64:
        """Return how much of all time before each moment they cover, nanoseconds."""
        moments = np.asarray(times, np.int64)
        if not len(self):
            return np.zeros_like(moments)
        before = np.concatenate(([0], np.cumsum(self.ends - self.starts)))
        i = np.searchsorted(self.starts, moments, "right")
        last = np.maximum(i - 1, 0)
        inside = np.clip(moments - self.starts[last], 0, self.ends[last] - self.starts[last])
        found: Int64 = np.where(i > 0, before[last] + inside, np.int64(0))
        return found

    def overlap(self, starts: npt.ArrayLike, ends: npt.ArrayLike) -> Int64:
        """Return how much of each stretch [start, end) they cover, nanoseconds; one number per stretch."""
        found: Int64 = np.maximum(self.covered_before(ends) - self.covered_before(starts), 0)
        return found

    def __and__(self, other: Intervals) -> Intervals:
        """Return the time that both cover."""
        if not len(self) or not len(other):
            return NOTHING
        times = np.concatenate((self.starts, other.starts, self.ends, other.ends))
        change = np.ones(len(times), np.int64)
        change[len(self) + len(other) :] = -1
        order = np.lexsort((change, times))  # at equal times an end comes first
        depth = np.cumsum(change[order])
        times = times[order]
        both = np.flatnonzero(depth[:-1] == 2)
        return Intervals(times[both], times[both + 1])

    def __or__(self, other: Intervals) -> Intervals:
        """Return the time that either covers."""
        return Intervals.union(np.concatenate((self.starts, other.starts)), np.concatenate((self.ends, other.ends)))

    def __sub__(self, other: Intervals) -> Intervals:
        """Return the time that only this one covers."""
        if not len(self) or not len(other):
            return self
        low, high = min(self.starts[0], other.starts[0]), max(self.ends[-1], other.ends[-1])
        starts, ends = np.concatenate(([low], other.ends)), np.concatenate((other.starts, [high]))
        proper = ends > starts
        return self & Intervals(starts[proper], ends[proper])

    def __len__(self) -> int:
        return len(self.starts)

    def __repr__(self) -> str:
        shown = ", ".join(f"[{a}, {b})" for a, b in zip(self.starts[:5], self.ends[:5], strict=True))
        return f"Intervals({shown}{', ...' if len(self) > 5 else ''})"


NOTHING = Intervals(np.empty(0, np.int64), np.empty(0, np.int64))


@dataclass(frozen=True)
class Window:
    """A stretch of time and what it is.

    Attributes:
        name: such as "ProfilerStep#5 to ProfilerStep#10".
        start, end: nanoseconds.
    """

    name: str
    start: int
    end: int

    @property
    def us(self) -> float:
        """Its length, microseconds."""
        return (self.end - self.start) / 1000

    def share(self, when: Intervals) -> float:
        """Which part of the window some stretches cover, 0 to 1; 0 of an empty window.

        Raises:
            ValueError: a stretch lies outside the window. Clip it first: a share over 100 % is no share.
        """
        if not len(when):
            return 0.0
        if int(when.starts[0]) < self.start or int(when.ends[-1]) > self.end:
            raise ValueError(f"{when!r} is not inside the window [{self.start}, {self.end})")
        return when.total / (self.end - self.start)
