"""Stretches of time that may overlap: how long they are together, and what others leave of them."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["Interval", "clipped", "length", "subtract", "union"]

Interval = tuple[float, float]


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """Merge what overlaps; sorted.

    >>> union([(4, 5), (0, 2), (1, 3)])
    [(0, 3), (4, 5)]
    """
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def clipped(intervals: Iterable[Interval], within: Iterable[Interval]) -> list[Interval]:
    """The parts of sorted, disjoint intervals that lie within other sorted, disjoint ones.

    >>> clipped([(0, 3), (4, 9)], within=[(2, 5), (6, 7)])
    [(2, 3), (4, 5), (6, 7)]
    """
    frames = list(within)
    parts: list[Interval] = []
    first = 0
    for start, end in intervals:
        while first < len(frames) and frames[first][1] <= start:
            first += 1
        for low, high in frames[first:]:
            if low >= end:
                break
            parts.append((max(start, low), min(end, high)))
    return parts


def subtract(intervals: Iterable[Interval], others: Iterable[Interval]) -> list[Interval]:
    """What sorted, disjoint intervals keep outside other sorted, disjoint ones.

    >>> subtract([(0, 10)], [(2, 3), (9, 12)])
    [(0, 2), (3, 9)]
    """
    gaps = list(others)
    parts: list[Interval] = []
    first = 0
    for start, end in intervals:
        while first < len(gaps) and gaps[first][1] <= start:
            first += 1
        for low, high in gaps[first:]:
            if low >= end:
                break
            if low > start:
                parts.append((start, low))
            start = high
        if start < end:
            parts.append((start, end))
    return parts


def length(intervals: Iterable[Interval]) -> float:
    """Their lengths together.

    >>> length([(0, 2), (3, 4)])
    3
    """
    return sum(end - start for start, end in intervals)
