"""A bound on the page's size: first times get coarser, then short events are left out, and the page says so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from torchwhy.page.block import block_of
from torchwhy.page.path_runs import PathRuns
from torchwhy.page.timeline import Timeline
from torchwhy.trace.file.columns import Flags, Int32
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.model.intervals import NOTHING
from torchwhy.wording import counted, duration_ns

__all__ = ["blocks_within", "without"]

_UNITS: Final = (1, 10, 100, 1000)
_LIMITS: Final = tuple(step * 10**digits for digits in range(3, 12) for step in (1, 2, 5))


def blocks_within(timelines: Sequence[Timeline], bytes_: int) -> list[bytes]:
    """Return the timelines' blocks, as exact as this number of bytes allows.

    In this order, until they fit: exact times; times to 10 ns, 100 ns and 1 us; without Python frames shorter than
    1 us; without all events shorter than 1 us, 2 us, 5 us, and so on; without what findings point at. Each block has a
    sentence that states this. The last is returned even if it does not fit.
    """
    blocks: list[bytes] = []
    for step in zip(*(_steps(timeline) for timeline in timelines), strict=True):
        blocks = [block_of(timeline, unit=unit, notes=notes) for timeline, unit, notes in step]
        if sum(map(len, blocks)) <= bytes_:
            break
    return blocks


def _steps(timeline: Timeline) -> Iterator[tuple[Timeline, int, list[str]]]:
    for unit in _UNITS:
        yield timeline, unit, _rounding(timeline, unit)
    length = timeline.end - timeline.start
    yield _shorter(timeline, (timeline.kind == Kind.PYTHON) & (length < _UNITS[-1]), "Python frame", _UNITS[-1])
    for limit in _LIMITS:
        yield _shorter(timeline, length < limit, "event", limit)
    path = timeline.path
    nothing = PathRuns(path.start[:0], path.end[:0], path.event[:0])
    smaller = replace(without(timeline, np.ones(len(timeline), np.bool_)), counters=(), path=nothing)
    all_events = f"All {counted(len(timeline), 'event')}"
    yield smaller, 1, [f"{all_events} and the curves left out to keep the page small."]
    unseen = tuple(replace(target, stretches=NOTHING, evidence=()) for target in timeline.findings)
    smaller = replace(smaller, findings=unseen, parts={}, steps=(), bands=(), row_sizes=timeline.row_sizes[:0])
    yield smaller, 1, [f"{all_events}, and what findings point at, left out to keep the page small."]


def _shorter(timeline: Timeline, brief: Flags, noun: str, limit: int) -> tuple[Timeline, int, list[str]]:
    smaller = without(timeline, brief)
    count = int(brief.sum())
    note = f"{counted(count, noun)} shorter than {duration_ns(limit)} left out to keep the page small."
    return smaller, _UNITS[-1], _rounding(smaller, _UNITS[-1]) + [note] * bool(count)


def _rounding(timeline: Timeline, unit: int) -> list[str]:
    rounded = int(((timeline.start % unit != 0) | (timeline.end % unit != 0)).sum())
    if not rounded:
        return []
    return [f"The times of {counted(rounded, 'event')} are rounded down to {duration_ns(unit)} to keep the page small."]


def without(timeline: Timeline, flags: Flags) -> Timeline:
    """Return a timeline without the events that are flagged; rows may become empty, none moves."""
    kept = ~flags
    place = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1).astype(np.int32)  # the last answers for -1

    def moved(events: Int32) -> Int32:
        found = place[events]
        return found[found >= 0]

    used = np.unique(timeline.name[kept])
    tied = kept[timeline.launch] & kept[timeline.work]
    passes = kept[timeline.forward] & kept[timeline.backward]
    return replace(
        timeline,
        row_sizes=np.bincount(timeline.row[kept], minlength=len(timeline.row_sizes)),
        start=timeline.start[kept],
        end=timeline.end[kept],
        name=np.searchsorted(used, timeline.name[kept]).astype(np.int32),
        names=tuple(timeline.names[i] for i in used.tolist()),
        short_names=tuple(timeline.short_names[i] for i in used.tolist()),
        category=tuple(timeline.category[i] for i in used.tolist()),
        kind=timeline.kind[kept],
        launch=place[timeline.launch[tied]],
        work=place[timeline.work[tied]],
        forward=place[timeline.forward[passes]],
        backward=place[timeline.backward[passes]],
        arguments=tuple(
            replace(column, events=moved(column.events), values=column.values[kept[column.events]])
            for column in timeline.arguments
        ),
        findings=tuple(
            replace(target, evidence=tuple(moved(events) for events in target.evidence)) for target in timeline.findings
        ),
        path=PathRuns(timeline.path.start, timeline.path.end, place[timeline.path.event]),
        position=place[timeline.position],
    )
