"""Sums, medians and counts per group, without a loop over the rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from torchwhy.trace.file.columns import Floats, Int64

__all__ = ["Groups", "us"]


def us(ns: npt.ArrayLike) -> Floats:
    """Nanoseconds as microseconds."""
    found: Floats = np.asarray(ns, np.int64) / 1000
    return found


class Groups:
    """Rows with equal keys.

    >>> groups = Groups(np.array([7, 3, 7]))
    >>> groups.count.tolist(), groups.sum(np.array([1, 2, 4])).tolist(), groups.median(np.array([1, 2, 4])).tolist()
    ([1, 2], [2, 5], [2.0, 2.5])

    Attributes:
        first: for each group the position of its first row.
        which: for each row its group.
        count: rows in each group.
    """

    def __init__(self, *keys: npt.NDArray[np.integer[Any]]) -> None:
        code = np.zeros(len(keys[0]), np.int64)
        for key in keys:
            numbers = np.unique(key, return_inverse=True)[1].reshape(-1)
            code = code * (int(numbers.max()) + 1 if len(numbers) else 1) + numbers
        _, self.first, which = np.unique(code, return_index=True, return_inverse=True)
        self.which: Int64 = which.reshape(-1)
        self.count: Int64 = np.bincount(self.which, minlength=len(self.first))

    def __len__(self) -> int:
        return len(self.first)

    def sum(self, values: npt.NDArray[np.integer[Any]] | npt.NDArray[np.bool_]) -> Int64:
        """The sum of each group; whole numbers below 2**53."""
        found: Int64 = np.bincount(self.which, weights=values, minlength=len(self)).astype(np.int64)
        return found

    def median(self, values: Int64) -> Floats:
        """The median of each group."""
        ordered = values[np.lexsort((values, self.which))]
        start = np.cumsum(self.count) - self.count
        low, high = start + (self.count - 1) // 2, start + self.count // 2
        found: Floats = (ordered[low] + ordered[high]) / 2
        return found

    def least(self, values: Int64) -> Int64:
        """The smallest value of each group."""
        ordered = values[np.lexsort((values, self.which))]
        found: Int64 = ordered[np.cumsum(self.count) - self.count]
        return found

    def most(self, values: Int64) -> Int64:
        """The largest value of each group."""
        ordered = values[np.lexsort((values, self.which))]
        found: Int64 = ordered[np.cumsum(self.count) - 1]
        return found

    def members(self) -> Iterable[npt.NDArray[np.intp]]:
        """The positions of each group's rows."""
        return np.split(np.argsort(self.which, kind="stable"), np.cumsum(self.count)[:-1]) if len(self) else []
