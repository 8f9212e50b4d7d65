"""Whether a series rises or falls, without assuming a shape."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from torchwhy.timing.quantiles import quantile

__all__ = ["mann_kendall", "relative_drift"]


def mann_kendall(values: Sequence[float]) -> float:
    """Return the Mann-Kendall statistic: negative while values fall; beyond +-3 chance is about 1 in 700.

    It counts, over all pairs, whether the later value is larger, and divides by the standard deviation that
    independent values would give, with the correction for ties (Mann 1945; Kendall, "Rank Correlation Methods", 1975).

    >>> round(mann_kendall(range(10)), 2), round(mann_kendall([9, 7, 8, 5, 6, 3, 4, 1, 2, 0]), 2), mann_kendall([1, 1])
    (3.94, -3.22, 0.0)
    """
    x = np.asarray(values, dtype=np.float64)
    n = len(x)
    s = float(sum(np.sign(x[i + 1 :] - x[i]).sum() for i in range(n - 1)))
    ties = np.unique(x, return_counts=True)[1].astype(np.float64)
    variance = (n * (n - 1) * (2 * n + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())) / 18
    return 0.0 if variance <= 0 or s == 0 else float(s - np.sign(s)) / sqrt(variance)


def relative_drift(values: Sequence[float]) -> float:
    """Return how much the last third's median differs from the first third's, relative to the first.

    >>> relative_drift([2.0, 2.0, 9.0, 9.0, 1.0, 1.0])
    -0.5
    """
    third = max(1, len(values) // 3)
    first = quantile(values[:third], 0.5)
    return quantile(values[-third:], 0.5) / first - 1 if first > 0 else 0.0
