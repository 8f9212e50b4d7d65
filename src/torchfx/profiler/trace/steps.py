"""The steps of a program: as it announced them, or as its repetition lets one infer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np

from torchfx.profiler.trace.columns import Int32
from torchfx.profiler.trace.events import Events
from torchfx.profiler.trace.kinds import Kind
from torchfx.profiler.trace.links import Links
from torchfx.profiler.trace.tree import Tree

__all__ = ["Step", "find_steps"]

RECORDED: Final = r"ProfilerStep\*?#?\d*"
LOOP_MARKS: Final = r"Optimizer\.step#|enumerate\(DataLoader\)#"
"""Annotations PyTorch makes once per step; the first of them repeats with the loop."""


@dataclass(frozen=True)
class Step:
    """One round of the program's loop.

    Attributes:
        name: "ProfilerStep#5", or what repeats.
        row: of the annotation; -1 where the step was inferred from the time between two events.
        lane: the thread the loop runs on.
        start, end: on the host, nanoseconds.
        device_end: end of the last device work launched in it, or `end` if that is later.
        inferred: whether the program announced it (False) or its repetition was found (True).
    """

    name: str
    row: int
    lane: int
    start: int
    end: int
    device_end: int
    inferred: bool

    @property
    def duration(self) -> int:
        """On the host, nanoseconds."""
        return self.end - self.start

    @property
    def number(self) -> int | None:
        """5 of "ProfilerStep#5"."""
        found = re.search(r"#(\d+)$", self.name)
        return int(found[1]) if found else None


def find_steps(events: Events, tree: Tree, links: Links) -> tuple[Step, ...]:
    """Return the steps in order of time; none where nothing repeats."""
    rows = events.find(RECORDED, Kind.ANNOTATION)
    if len(rows):
        spans = [(events.named(row), row, int(events.ts[row]), int(events.end[row])) for row in _distinct(events, rows)]
        return _with_device(spans, events, links, inferred=False)
    rows = _repeating(events, tree)
    if len(rows) >= 2:
        spans = [(events.named(row), row, int(events.ts[row]), int(events.end[row])) for row in rows.tolist()]
        return _with_device(spans, events, links, inferred=True)
    return _with_device(_between_marks(events), events, links, inferred=True)


def _distinct(events: Events, rows: Int32) -> list[int]:
    """Of steps with one number, the longest: exporters have repeated them on other lanes."""
    best: dict[str, int] = {}
    for row in rows.tolist():
        name = events.named(row)
        if name not in best or events.dur[row] > events.dur[best[name]]:
            best[name] = row
    return sorted(best.values(), key=lambda row: int(events.ts[row]))


def _repeating(events: Events, tree: Tree) -> Int32:
    """The outermost annotation of the program's own that comes back, one after another, and covers the most time."""
    rows = events.rows(Kind.ANNOTATION)
    rows = rows[tree.parent[rows] < 0]
    marks = events.names_matching(LOOP_MARKS)
    best, covered = rows[:0], 0
    for name in np.unique(events.name[rows]):
        same = rows[events.name[rows] == name]
        time = int(events.dur[same].sum())
        apart = len(same) >= 2 and bool((events.ts[same][1:] >= events.end[same][:-1]).all())
        if apart and time > covered and not marks[name]:
            best, covered = same, time
    return best


def _between_marks(events: Events) -> list[tuple[str, int, int, int]]:
    """From one mark of the loop to the next: optimizer step to optimizer step, or batch to batch."""
    for pattern, ends in ((r"Optimizer\.step#", True), (r"enumerate\(DataLoader\)#", False)):
        rows = events.find(pattern, Kind.ANNOTATION)
        if len(rows):
            rows = rows[(events.name[rows] == events.name[rows[0]]) & (events.lane[rows] == events.lane[rows[0]])]
        if len(rows) >= 3:
            times = (events.end if ends else events.ts)[rows].tolist()
            return [("between " + events.named(int(rows[0])), -1, a, b) for a, b in zip(times, times[1:], strict=False)]
    return []


def _with_device(
    spans: list[tuple[str, int, int, int]], events: Events, links: Links, *, inferred: bool
) -> tuple[Step, ...]:
    launched = links.launch >= 0
    times, order = events.ts[links.launch[launched]], None
    order = np.argsort(times, kind="stable")
    times, ends = times[order], events.end[links.work[launched]][order]
    steps = []
    for name, row, start, end in spans:
        low, high = np.searchsorted(times, [start, end])
        last = int(ends[low:high].max()) if high > low else end
        lane = int(events.lane[row]) if row >= 0 else -1
        steps.append(Step(name, row, lane, start, end, max(end, last), inferred))
    return tuple(steps)
