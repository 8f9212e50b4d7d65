"""Medians, spreads, and intervals that assume nothing about how times are distributed.

Run times are skewed, have several modes and long tails, so means and normal intervals describe them badly
(Le Boudec, "Performance Evaluation of Computer and Communication Systems", 2010, chapter 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

__all__ = ["Interval", "iqr", "median_interval", "quantile"]


@dataclass(frozen=True)
class Interval:
    """An interval for a median: its ends, in the data's unit, and the confidence it really has, in [0, 1]."""

    low: float
    high: float
    confidence: float


def quantile(values: Sequence[float], q: float) -> float:
    """Return the q-quantile, q in [0, 1], linear between neighbours (type 7 of Hyndman and Fan, 1996).

    >>> quantile([1, 2, 3, 4], 0.5)
    2.5
    """
    return float(np.quantile(np.asarray(values, dtype=np.float64), q))


def iqr(values: Sequence[float]) -> float:
    """Return the interquartile range, the width of the middle half.

    >>> iqr([1, 2, 3, 4, 5])
    2.0
    """
    return quantile(values, 0.75) - quantile(values, 0.25)


def median_interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """Return the narrowest symmetric pair of order statistics that holds the median with the given confidence.

    Each independent value lies below the median with probability 1/2, so the number below it is binomial, whatever the
    distribution (David and Nagaraja, "Order Statistics", 3rd edition, 2003, section 7.1). Fewer than 6 values cannot
    give 95%: then the interval is the whole range, and its `confidence` says what that is worth.

    Choosing when to stop by looking at the interval makes its true coverage a little smaller.

    >>> median_interval([5.0, 1.0, 4.0, 2.0, 6.0, 3.0])
    Interval(low=1.0, high=6.0, confidence=0.96875)
    """
    ordered = sorted(values)
    rank, covered = _rank(len(ordered), confidence)
    return Interval(float(ordered[rank]), float(ordered[-1 - rank]), covered)


@lru_cache(maxsize=4096)
def _rank(n: int, confidence: float) -> tuple[int, float]:
    """Return the largest k whose interval, from the (k+1)-th smallest to the (k+1)-th largest, is confident enough."""
    total = 1 << n
    below = count = 1  # outcomes with at most k values on one side; the binomial coefficient (n over k)
    best = (0, max(0.0, 1 - 2 * below / total))
    for k in range(1, (n - 1) // 2 + 1):
        count = count * (n - k + 1) // k
        below += count
        covered = 1 - 2 * below / total
        if covered < confidence:
            break
        best = (k, covered)
    return best
