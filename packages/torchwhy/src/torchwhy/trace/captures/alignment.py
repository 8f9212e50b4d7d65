"""Which elements of two sequences belong together in every longest common subsequence of them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from torchwhy.trace.file.columns import Flags, Int32, Int64

__all__ = ["certain_pairs"]


def certain_pairs(equal: Flags, meaning: Int64) -> tuple[int, Int64]:
    """Align two sequences; pair only what every longest common subsequence pairs with elements of one meaning.

    Args:
        equal: (n, m), whether element i of the first equals element j of the second.
        meaning: a number per element of the second; those with the same number are interchangeable.

    Returns:
        The length of a longest common subsequence; and for each of the n elements the first element of the second that
        it may be paired with, or -1 where it may be left out, or paired with elements of different meanings.
    """
    n, m = equal.shape
    before = _lengths(equal)
    after = _lengths(equal[::-1, ::-1])[::-1, ::-1]
    longest = int(before[n, m])
    found = np.full(n, -1, np.int64)
    for i in range(n):
        if (before[i] + after[i + 1] == longest).any():
            continue  # some longest subsequence does without it
        partners = np.flatnonzero(equal[i] & (before[i, :-1] + 1 + after[i + 1, 1:] == longest))
        if len(partners) and (meaning[partners] == meaning[partners[0]]).all():
            found[i] = partners[0]
    return longest, found


def _lengths(equal: Flags) -> npt.NDArray[np.int32]:
    """At [i, j] the length of a longest common subsequence of the first i and the first j elements."""
    n, m = equal.shape
    found: Int32 = np.zeros((n + 1, m + 1), np.int32)
    for i in range(n):
        np.maximum(found[i, 1:], found[i, :-1] + equal[i], out=found[i + 1, 1:])
        np.maximum.accumulate(found[i + 1], out=found[i + 1])
    return found
