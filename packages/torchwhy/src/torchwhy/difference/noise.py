"""Whether two sets of times differ beyond their noise, when there are few of them.

The times are a recording's steps. What differs between two runs of one program (clocks, memory layout, neighbours) is
not in them: before trusting a few percent, record both sides again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt

from torchwhy.trace.file.columns import Floats, Int64

__all__ = ["FEWEST", "MARGIN", "Shift", "Spread", "differs", "drift_of", "shift_of"]

FEWEST: Final = 3
"""Fewer steps than this on a side show nothing about noise."""

MARGIN: Final = 0.01
"""A smaller relative difference of step times is no difference, as in `torchwhy.compare`."""

MOST: Final = 1000
"""All pairs of steps are compared. From a side with more steps than this, this number is taken, evenly over their
order."""

# Quantiles of Student's t for two-sided 95% and 99%, by degrees of freedom from 1 on; the last serves all above.
_T95: Final = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131)
_T99: Final = (63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.106, 3.055, 3.012, 2.977, 2.947)


@dataclass(frozen=True)
class Shift:
    """How the times of B relate to those of A.

    Attributes:
        ratio: of B's times to A's: the median over all pairs.
        low, high: hold the true ratio with 95% confidence; equal to `ratio` when `judged` is False.
        judged: whether there were enough steps.
    """

    ratio: float
    low: float
    high: float
    judged: bool

    @property
    def noise(self) -> float:
        """By which fraction the ratio may be off: the same whichever side is called A."""
        return math.sqrt(self.high / self.low) - 1 if self.low > 0 else 0.0

    @property
    def within_noise(self) -> bool:
        """Whether the interval holds 1."""
        return self.low <= 1 <= self.high

    @property
    def beyond_noise(self) -> bool:
        """Whether the whole interval lies more than `MARGIN` from 1."""
        return self.judged and (self.low > 1 + MARGIN or self.high < 1 / (1 + MARGIN))


@dataclass(frozen=True)
class Spread:
    """Amounts of several names over the steps of a recording; not kept by step, since there may be many of both.

    Attributes:
        mean: per step, one entry per name.
        variance: of one step; 0 with a single step.
        steps: how many.
    """

    mean: Floats
    variance: Floats
    steps: int

    @classmethod
    def of(cls, values: Floats) -> Spread:
        """Return the spread of values with one row per name and one column per step."""
        steps = values.shape[1]
        return cls(values.mean(1), values.var(1, ddof=1) if steps > 1 else np.zeros(len(values)), steps)

    @classmethod
    def of_parts(cls, name: Int64, step: Int64, amount: Floats, names: int, steps: int) -> Spread:
        """Return the spread of pieces that each belong to a name and a step; a missing piece counts as 0."""
        places, which = np.unique(name * steps + step, return_inverse=True)
        values, owner = np.bincount(which.reshape(-1), amount, len(places)), places // steps
        mean = np.bincount(owner, values, names) / steps
        without = steps - np.bincount(owner, minlength=names)
        away = np.bincount(owner, (values - mean[owner]) ** 2, names) + without * mean**2
        return cls(mean, away / max(steps - 1, 1), steps)

    def take(self, rows: Int64) -> Spread:
        """The names at these positions; where one is -1, it is a name with nothing."""
        there = rows >= 0
        return Spread(np.where(there, self.mean[rows], 0.0), np.where(there, self.variance[rows], 0.0), self.steps)


def shift_of(a: npt.ArrayLike, b: npt.ArrayLike, confidence: float = 0.95) -> Shift:
    """Estimate by which factor b's times differ from a's.

    The estimate of Hodges and Lehmann on logarithms, with the interval that inverts the test of Mann and Whitney
    (Hollander, Wolfe and Chicken, "Nonparametric Statistical Methods", 3rd edition, 2014, sections 4.2 and 4.3): a slow
    step among many moves neither. Where there are too few steps for 95% (3 against 3), Welch's interval; where there
    are too few for another confidence, nothing is judged. Up to 40 values the confidence is exact.

    Where a step resembles the one before, as when the machine slows down half-way, a number of steps says less than as
    many independent ones: the interval is as much wider as that makes the error of a mean (a first-order
    autoregression).

    >>> shift_of([100, 101, 99, 100, 102], [80, 81, 79, 80, 82]).beyond_noise
    True
    >>> shift_of([100, 120, 90, 100], [110, 95, 100, 105]).beyond_noise
    False
    """
    wider = _dependence(a, b)
    first, second = (_logarithms(values) for values in (a, b))
    if not len(first) or not len(second):
        return Shift(1.0, 1.0, 1.0, judged=False)
    pairs = np.sort((second[None, :] - first[:, None]).ravel())
    middle = float(np.median(pairs))
    if min(len(first), len(second)) < FEWEST:
        return Shift(math.exp(middle), math.exp(middle), math.exp(middle), judged=False)
    outside = _pairs_outside(len(first), len(second), confidence)
    if outside >= 0:
        low, high = float(pairs[outside]), float(pairs[-1 - outside])
    elif confidence != 0.95:
        return Shift(math.exp(middle), math.exp(middle), math.exp(middle), judged=False)
    else:
        reach = float(_welch(Spread.of(first[None, :]), Spread.of(second[None, :]), _T95)[0])
        mean = float(second.mean() - first.mean())
        low, high = min(mean - reach, middle), max(mean + reach, middle)
    low, high = middle - wider * (middle - low), middle + wider * (high - middle)
    return Shift(math.exp(middle), _exp(low), _exp(high), judged=True)


def differs(a: Spread, b: Spread) -> npt.NDArray[np.bool_]:
    """Whether the mean of each name on b differs from that on a, with 99% confidence (Welch).

    Args:
        a, b: of the same names; the numbers of steps may differ.

    With fewer than three steps on a side nothing is known, and every name counts as different.
    """
    if min(a.steps, b.steps) < FEWEST:
        return np.ones(len(a.mean), np.bool_)
    found: npt.NDArray[np.bool_] = np.abs(b.mean - a.mean) > _welch(a, b, _T99)
    return found


def _welch(a: Spread, b: Spread, quantiles: tuple[float, ...]) -> Floats:
    """Half the width of Welch's interval for the difference of two means, name by name."""
    first, second = a.variance / a.steps, b.variance / b.steps
    both = first + second
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = both**2 / (first**2 / (a.steps - 1) + second**2 / (b.steps - 1))
    freedom = np.where(np.isfinite(freedom), freedom, 1)
    t = np.array(quantiles)[np.clip(freedom.astype(np.int64), 1, len(quantiles)) - 1]
    found: Floats = t * np.sqrt(both)
    return found


def _dependence(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """By how much an interval for the difference must be wider because steps depend on those before."""
    variances, inflated = 0.0, 0.0
    for values in (a, b):
        steps = np.log(np.maximum(np.asarray(values, np.float64), 1e-12))
        if len(steps) < FEWEST:
            return 1.0
        of_mean = float(steps.var(ddof=1)) / len(steps)
        r = _resemblance(steps)
        variances, inflated = variances + of_mean, inflated + of_mean * (1 + r) / (1 - r)
    return math.sqrt(inflated / variances) if variances > 0 else 1.0


def _resemblance(steps: Floats) -> float:
    """The correlation of each step with the next, from 0 to 0.9; 0 for too few steps."""
    away = steps - steps.mean()
    total = float(away @ away)
    if len(steps) < 5 or total <= 0:
        return 0.0
    return min(max(float(away[1:] @ away[:-1]) / total, 0.0), 0.9)


def _logarithms(values: npt.ArrayLike) -> Floats:
    times = np.sort(np.maximum(np.asarray(values, np.float64), 1e-12))
    if len(times) > MOST:
        times = times[np.linspace(0, len(times) - 1, MOST).astype(np.int64)]
    found: Floats = np.log(times)
    return found


def _exp(value: float) -> float:
    return math.exp(min(value, 700))


def _pairs_outside(n: int, m: int, confidence: float) -> int:
    """How many of the n*m ordered pairs lie below (and above) an interval of a confidence; -1 if no interval exists."""
    if n + m > 40:  # the normal approximation is good to a fraction of a pair
        z = NormalDist().inv_cdf((1 + confidence) / 2)
        return max(int(n * m / 2 - z * math.sqrt(n * m * (n + m + 1) / 12)), 0)
    return int(np.searchsorted(_distribution(n, m), (1 - confidence) / 2, "right")) - 1


@lru_cache(maxsize=512)
def _distribution(n: int, m: int) -> Floats:
    """The distribution of the number of pairs in which b is smaller, if a and b are alike: cumulative, from 0 on."""
    ways = np.zeros(n * m + 1)  # in how many ways n of n+m ranks give each value of the statistic
    ways[0] = 1
    for i in range(1, n + 1):  # times (1 - x^(m+i)), over (1 - x^i)
        ways[m + i :] -= ways[: n * m + 1 - m - i].copy()
        for j in range(i, n * m + 1):
            ways[j] += ways[j - i]
    found: Floats = np.cumsum(ways) / math.comb(n + m, n)
    return found


def drift_of(values: Floats) -> tuple[float, float] | None:
    """The medians of the first and the second half of the steps if the two don't even overlap; else None.

    >>> drift_of(np.array([7.0, 8, 8, 8, 20, 16, 16, 16]))
    (8.0, 16.0)
    """
    if len(values) < 6:
        return None
    first, second = values[: len(values) // 2], values[(len(values) + 1) // 2 :]
    medians = float(np.median(first)), float(np.median(second))
    apart = first.max() < second.min() or second.max() < first.min()
    return medians if apart and max(medians) > 1.1 * min(medians) else None
