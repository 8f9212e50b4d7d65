"""At which commits a series of runs changed, beyond the noise from run to run, and whether it is slower now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

import numpy as np

from torchwhy.difference.noise import FEWEST, Shift, shift_of
from torchwhy.history.store import StoredRun
from torchwhy.trace.file.columns import Floats

__all__ = ["ALARMS", "REACH", "WINDOW", "Change", "Series", "changes_in", "series_of"]

REACH: Final = 20
"""Runs before and after a commit that are compared, at most: the noise model is exact for 40 values."""

NEAR: Final = REACH // 2
"""The same for changes that follow each other: within `REACH` runs there may be another."""

WINDOW: Final = 2 * REACH
"""The newest runs, in which `check` looks for a change."""

ALARMS: Final = 0.01
"""The probability that a series which never changed has a change found in it, at most.

It is shared out over the comparisons that are made (Bonferroni), since the largest difference is picked.
"""


@dataclass(frozen=True)
class Change:
    """A place in a series from which on runs take longer, or less long.

    Attributes:
        at: the index of the first run after it.
        shift: how the runs after it relate to those before, up to the next change on either side, with 95% confidence.
        before, after: how many runs that compares.
    """

    at: int
    shift: Shift
    before: int
    after: int

    @property
    def slower(self) -> bool:
        """Whether runs take longer from there on."""
        return self.shift.ratio > 1


@dataclass(frozen=True)
class Series:
    """Runs of one program, metric, machine and configuration, by the time of their commits.

    Attributes:
        runs: at least one.
    """

    runs: tuple[StoredRun, ...]

    @property
    def values(self) -> Floats:
        """The median of each run."""
        return np.array([each.run.value for each in self.runs])

    @property
    def starts(self) -> tuple[int, ...]:
        """Where another commit begins: the program can have changed only there. A run without a commit is its own."""
        commits = [each.commit.id for each in self.runs]
        return tuple(i for i in range(1, len(commits)) if not commits[i] or commits[i] != commits[i - 1])

    @property
    def newest(self) -> Series:
        """The last `WINDOW` runs."""
        return Series(self.runs[-WINDOW:])

    @property
    def can_be_judged(self) -> bool:
        """Whether there are runs enough for any change to be found, however large."""
        level = _level(self.starts, len(self.runs))
        steps = np.arange(len(self.runs), dtype=np.float64)
        tried = ((np.where(steps < k, 1.0, 2.0), k) for k in _candidates(self.starts, 0, len(self.runs)))
        return any(_shift_at(values, k, 0, len(values), level).judged for values, k in tried)

    def changes(self) -> tuple[Change, ...]:
        """Return all changes, by time."""
        return changes_in(self.values, self.starts)

    def has(self, commit: str) -> bool:
        """Whether a run is of a commit, given by its name or the beginning of it."""
        return any(each.commit.id.startswith(commit) for each in self.runs)

    def since(self, commit: str) -> Series:
        """Return the runs from the first of a commit on, of which there must be one."""
        first = next(i for i, each in enumerate(self.runs) if each.commit.id.startswith(commit))
        return Series(self.runs[first:])


def series_of(runs: Iterable[StoredRun]) -> tuple[Series, ...]:
    """Return the series that runs belong to; within each they keep their order."""
    ordered = sorted(runs, key=lambda each: each.series)
    return tuple(Series(tuple(group)) for _, group in groupby(ordered, key=lambda each: each.series))


def changes_in(values: Floats, starts: Sequence[int]) -> tuple[Change, ...]:
    """Find where a series changes its level: binary segmentation with the noise model of `torchwhy diff`.

    Runs are compared, not steps: what differs from run to run (clocks, memory layout, neighbours) counts as noise. At
    each candidate the runs before and after, up to `REACH` and up to `NEAR` of each, are compared. Among candidates
    beyond the noise the one counts that leaves the smallest sum of deviations from the medians of both sides, and both
    sides are searched again. In the end each change moves to where it leaves the smallest sum between its neighbours.

    Args:
        values: one positive number per run, in order.
        starts: the indices at which a change may begin.

    >>> changes_in(np.array([10.0, 10.1, 9.9] * 5 + [11.0, 11.1, 10.9] * 3), range(1, 24))[0].at
    15
    """
    level = _level(starts, len(values))
    places = sorted(_splits(values, starts, level, 0, len(values)))
    edges = [0, *places, len(values)]
    for i in range(1, len(edges) - 1):
        low, high = edges[i - 1], edges[i + 1]
        edges[i] = max(_candidates(starts, low, high), key=lambda at: _explained(values, at, low, high))
    found = []
    for left, k, right in zip(edges, edges[1:], edges[2:], strict=False):
        shift = _shift_at(values, k, left, right)
        found.append(Change(k, shift, min(k - left, REACH), min(right - k, REACH)))
    return tuple(found)


def _splits(values: Floats, starts: Sequence[int], level: float, low: int, high: int) -> list[int]:
    beyond = [
        k
        for k in _candidates(starts, low, high)
        if any(_shift_at(values, k, low, high, level, reach).beyond_noise for reach in (REACH, NEAR))
    ]
    if not beyond:
        return []
    k = max(beyond, key=lambda at: _explained(values, at, low, high))
    return [k, *_splits(values, starts, level, low, k), *_splits(values, starts, level, k, high)]


def _candidates(starts: Sequence[int], low: int, high: int) -> list[int]:
    return [k for k in starts if k - low >= FEWEST and high - k >= FEWEST]


def _level(starts: Sequence[int], runs: int) -> float:
    comparisons = sum(1 + (max(k, runs - k) > NEAR) for k in _candidates(starts, 0, runs))
    return 1 - ALARMS / max(comparisons, 1)


def _shift_at(values: Floats, k: int, low: int, high: int, level: float = 0.95, reach: int = REACH) -> Shift:
    return shift_of(values[max(low, k - reach) : k], values[k : min(high, k + reach)], level)


def _explained(values: Floats, k: int, low: int, high: int) -> float:
    """By how much two medians describe the logarithms better than one does."""
    logs = np.log(np.maximum(values[low:high], 1e-12))
    return _away(logs) - _away(logs[: k - low]) - _away(logs[k - low :])


def _away(logs: Floats) -> float:
    return float(np.abs(logs - np.median(logs)).sum())
