"""Intervals of samples, (start, end): where flags are set, joined over short gaps and widened. Needs no PyTorch."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

__all__ = ["Interval", "loud", "runs", "widened"]

Interval = tuple[int, int]


def loud(blocks: Iterable[npt.NDArray[np.floating]], threshold: float, least: int) -> list[Interval]:
    """Return where any channel of a signal is louder than a threshold.

    Args:
        blocks: the signal, one block (channels, frames) after the other.
        threshold: the largest magnitude that is silence.
        least: how many silent samples end an interval, >= 1.
    """
    found: list[Interval] = []
    start = 0
    for block in blocks:
        found = _followed(found, runs((np.abs(block) > threshold).any(0), least), least, start)
        start += block.shape[-1]
    return found


def runs(flags: npt.NDArray[np.bool_], least: int = 1) -> list[Interval]:
    """Return where flags (samples,) are set, over gaps shorter than `least` >= 1."""
    places = np.flatnonzero(flags)
    if not len(places):
        return []
    ends = np.flatnonzero(np.diff(places) > least)
    firsts, lasts = places[np.append(0, ends + 1)], places[np.append(ends, -1)] + 1
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))


def _followed(found: list[Interval], others: list[Interval], least: int, shift: int) -> list[Interval]:
    """Return intervals with those of the next block, `shift` samples later."""
    others = [(first + shift, last + shift) for first, last in others]
    if found and others and others[0][0] - found[-1][1] < least:
        others[0] = (found[-1][0], others[0][1])
        found = found[:-1]
    return found + others


def widened(intervals: list[Interval], keep: int, length: int) -> list[Interval]:
    """Return intervals with `keep` samples more on both sides, at most half of the gap there, within (0, length)."""
    between = [0, *((a[1] + b[0]) // 2 for a, b in itertools.pairwise(intervals)), length]
    return [
        (max(first - keep, between[i]), min(last + keep, between[i + 1])) for i, (first, last) in enumerate(intervals)
    ]
