"""The timelines of a job's ranks as one, by a common clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from torchwhy.page.path_runs import PathRuns
from torchwhy.page.timeline import Timeline, by_frequency
from torchwhy.trace.file.columns import Int32

__all__ = ["Source", "joined"]


@dataclass(frozen=True)
class Source:
    """A timeline and what it is among others.

    Attributes:
        name: such as "rank 3".
        timeline: its events.
        shift: what is added to its times, nanoseconds.
    """

    name: str
    timeline: Timeline
    shift: int


def joined(sources: Sequence[Source]) -> Timeline:
    """Return one timeline with the bands of all, one source after the other, and the steps of the first.

    It has no critical path and no targets: those belong to one trace. Its `position` is empty.
    """
    parts = [source.timeline for source in sources]
    firsts = np.cumsum([0] + [len(part) for part in parts])[:-1]
    name, names, short_names, category = _common_names(parts)

    def events(which: str) -> Int32:
        columns = [getattr(part, which) + np.int32(first) for part, first in zip(parts, firsts, strict=True)]
        return np.concatenate(columns).astype(np.int32)

    empty = np.empty(0, np.int64)
    return Timeline(
        bands=tuple(replace(band, source=one.name) for one in sources for band in one.timeline.bands),
        row_sizes=np.concatenate([part.row_sizes for part in parts]),
        start=np.concatenate([one.timeline.start + one.shift for one in sources]),
        end=np.concatenate([one.timeline.end + one.shift for one in sources]),
        name=name,
        names=names,
        short_names=short_names,
        category=category,
        kind=np.concatenate([part.kind for part in parts]),
        launch=events("launch"),
        work=events("work"),
        forward=events("forward"),
        backward=events("backward"),
        arguments=tuple(
            replace(column, events=column.events + np.int32(first))
            for part, first in zip(parts, firsts, strict=True)
            for column in part.arguments
        ),
        window=(
            min(one.timeline.window[0] + one.shift for one in sources),
            max(one.timeline.window[1] + one.shift for one in sources),
        ),
        steps=tuple(
            replace(
                step,
                start=step.start + sources[0].shift,
                end=step.end + sources[0].shift,
                device_end=step.device_end + sources[0].shift,
            )
            for step in parts[0].steps
        ),
        findings=(),
        parts={},
        path=PathRuns(empty, empty, empty.astype(np.int32)),
        counters=tuple(
            replace(curve, label=f"{one.name}, {curve.label}", times=curve.times + one.shift)
            for one in sources
            for curve in one.timeline.counters
        ),
        notes=tuple(f"{one.name}: {note}" for one in sources for note in one.timeline.notes),
        position=empty.astype(np.int32),
    )


def _common_names(parts: Sequence[Timeline]) -> tuple[Int32, tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """The number of each event's name among all, those names, their short ones and their categories."""
    numbers: dict[str, int] = {}
    short: dict[str, str] = {}
    category: dict[str, str] = {}
    columns = []
    for part in parts:
        own = np.array([numbers.setdefault(text, len(numbers)) for text in part.names], np.int32)
        short.update(zip(part.names, part.short_names, strict=True))
        category.update(zip(part.names, part.category, strict=True))
        columns.append(own[part.name])
    name, names = by_frequency(np.concatenate(columns), list(numbers))
    return name, names, tuple(short[each] for each in names), tuple(category[each] for each in names)
