"""Steps that were not recorded: repetitions on the thread that runs the program's loop. In doubt there are no steps."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from torchwhy.trace.file.columns import ABSENT, Int32, Int64
from torchwhy.trace.meaning.annotations import DATALOADER, OPTIMIZER_STEP, PYTORCHS_OWN, between, numberless
from torchwhy.trace.meaning.frames import MODULE
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.operators import ONCE_A_STEP
from torchwhy.trace.meaning.runtime import GRAPH_LAUNCH
from torchwhy.trace.model.events import Events
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.links import Links
from torchwhy.trace.model.tree import Tree

__all__ = ["Span", "infer_spans"]

MARKS: Final = ((OPTIMIZER_STEP, True), (DATALOADER, False))
"""Annotations PyTorch makes once per step, and whether a step ends (True) or begins with one."""

COVER: Final = 0.5
"""Less of the loop's thread than this between the first and the last step, and they aren't the program's steps."""

COLD: Final = 10
"""For each of this number of steps, one call outside the steps may be longer than a step without being counted: a first
use that sets something up may take longer than all steps together."""

ALONE: Final = 0.8
"""An annotation that takes this much of the time from its first to its last is the step, and not a part of one."""

LONGEST_PERIOD: Final = 20_000
"""Calls in one round of an unannotated loop, at most."""


class Span(NamedTuple):
    """A stretch of a thread's time that may be a step; `row` is -1 where no event is exactly that."""

    name: str
    row: int
    lane: int
    start: int
    end: int


def infer_spans(events: Events, tree: Tree, links: Links) -> list[Span]:
    """Return what repeats, the surest sign first: the program's own annotation, PyTorch's marks, modules, calls."""
    rows = events.rows(Kind.OPERATOR, Kind.ANNOTATION)
    if not len(rows):
        rows = links.launches
    if not len(rows):
        return []
    outermost = tree.rows[tree.parent[tree.rows] < 0]
    candidates = (
        _annotated(events, outermost),
        _between_marks(events),
        _by_modules(events),
        _by_calls(events, outermost, links, rows),
    )
    return next((spans for spans in candidates if spans and _covers(events, outermost, spans)), [])


def _covers(events: Events, outermost: Int32, spans: list[Span]) -> bool:
    """Whether the steps take most of the time in which the host did anything, a few cold calls left out."""
    steps = Intervals.union([span.start for span in spans], [span.end for span in spans])
    outside = events.covered(outermost, steps) == 0
    cold = outermost[outside & (events.dur[outermost] > np.median([span.end - span.start for span in spans]))]
    counted = outermost if len(cold) > len(spans) // COLD else outermost[~np.isin(outermost, cold)]
    active = events.times_of(counted)
    return (active & steps).total >= COVER * active.total and steps.total > 0


def _annotated(events: Events, outermost: Int32) -> list[Span]:
    """An outermost annotation of the program's own that comes back, one after another.

    Where a round has several ("forward", "backward"), a step lasts from the first of them to the next time it begins.
    """
    rows = outermost[events.kind[outermost] == Kind.ANNOTATION]
    rows = rows[~events.are(PYTORCHS_OWN, rows)]
    if len(rows) < 2:
        return []
    lanes, which = np.unique(events.lane[rows], return_inverse=True)
    lane = int(lanes[np.bincount(which, weights=events.dur[rows]).argmax()])
    rows = rows[events.lane[rows] == lane]
    labels = [numberless(events.named(row)) for row in rows.tolist()]
    often, time = Counter(labels), Counter[str]()
    for label, row in zip(labels, rows.tolist(), strict=True):
        if often[label] >= 2:
            time[label] += int(events.dur[row])
    if not time:
        return []
    # Of the annotations that come back, the rounds are counted by the one that takes the most time.
    main = time.most_common(1)[0][0]
    mine = rows[[label == main for label in labels]]
    begin, end = events.ts[mine], events.end[mine]
    if not bool((begin[1:] >= end[:-1]).all()):
        return []
    if int((end - begin).sum()) >= ALONE * int(end[-1] - begin[0]) or len(often) == 1:
        return [Span(events.named(row), row, lane, int(events.ts[row]), int(events.end[row])) for row in mine.tolist()]
    # What else comes as often belongs to the same round; the round begins with whichever is first.
    together = [often[label] == len(mine) for label in labels]
    members, names = rows[together], [label for label, chosen in zip(labels, together, strict=True) if chosen]
    size = len(members) // len(mine)
    if names != names[:size] * len(mine):
        return []
    starts = events.ts[members][::size].tolist()
    ends = [*starts[1:], int(events.end[members][-1])]
    return [Span(between(names[0]), -1, lane, a, b) for a, b in zip(starts, ends, strict=True) if b > a]


def _between_marks(events: Events) -> list[Span]:
    """From one mark of the loop to the next: optimizer step to optimizer step, or batch to batch."""
    for mark, ends in MARKS:
        rows = events.of(mark)
        if len(rows):
            same = (events.name[rows] == events.name[rows[0]]) & (events.lane[rows] == events.lane[rows[0]])
            rows = rows[same]
        if len(rows) >= 3:
            times, lane = (events.end if ends else events.ts)[rows].tolist(), int(events.lane[rows[0]])
            name = between(events.named(int(rows[0])))
            return [Span(name, -1, lane, a, b) for a, b in pairwise(times) if b > a]
    return []


def _by_modules(events: Events) -> list[Span]:
    """From one call of the outermost module to the next: "nn.Module: Net_0" names the very instance."""
    rows = events.of(MODULE)
    if len(rows) < 3:
        return []
    lane = int(np.bincount(events.lane[rows]).argmax())
    rows = rows[events.lane[rows] == lane]
    reach = np.maximum.accumulate(events.end[rows])
    rows = rows[np.concatenate(([True], events.ts[rows][1:] >= reach[:-1]))]
    period = _period(events.name[rows].astype(np.int64)) if len(rows) >= 3 else 0
    return _rounds(events, rows, period, int(rows[0])) if period else []


def _by_calls(events: Events, outermost: Int32, links: Links, active: Int32) -> list[Span]:
    """Rounds of a loop without annotations: the calls of its thread are one sequence over and over, from end to end.

    The layers of one model repeat too, so something must be among the calls that is done once a step; and anything
    else before, between or after makes it doubtful.
    """
    lane = int(np.bincount(events.lane[active]).argmax())
    rows = outermost[events.lane[outermost] == lane]
    graph = events.are(GRAPH_LAUNCH, rows)
    rows = rows[(events.kind[rows] != Kind.RUNTIME) | graph]
    period = _period(_tokens(events, rows, links)) if len(rows) >= 3 else 0
    if not period:
        return []
    once = events.are(ONCE_A_STEP, rows[:period]) | events.are(GRAPH_LAUNCH, rows[:period])
    return _rounds(events, rows, period, int(rows[np.argmax(once)])) if once.any() else []


def _rounds(events: Events, rows: Int32, period: int, named: int) -> list[Span]:
    """From the first call of each round to the first of the next; a round that is cut off at the end is left out."""
    starts = events.ts[rows][::period].tolist()
    ends = [*starts[1:], int(events.end[rows[-1]])]
    whole = len(rows) // period
    name, lane = between(events.named(named)), int(events.lane[rows[0]])
    return [Span(name, -1, lane, a, b) for a, b in zip(starts[:whole], ends[:whole], strict=True) if b > a]


def _tokens(events: Events, rows: Int32, links: Links) -> Int64:
    """What each call is, as a number: its name, and of a graph launch which graph."""
    tokens = events.name[rows].astype(np.int64)
    launched = links.put_by(rows) if events.has("graph id") else rows[:0]
    if len(launched):
        graph = np.full(len(events), ABSENT, np.int64)
        graph[links.of(launched)] = events.integers("graph id", launched)
        known = graph[rows] != ABSENT
        tokens[known] = -1 - (graph[rows][known] & 0x7FFFFFFF)
    return tokens


def _period(tokens: Int64) -> int:
    """The smallest period of a whole sequence that comes round at least three times; 0 without one."""
    again = np.flatnonzero(tokens == tokens[0])
    for period in again[1:].tolist():
        if period * 3 > len(tokens) or period > LONGEST_PERIOD:
            break
        if np.array_equal(tokens[period:], tokens[:-period]):
            return int(period)
    return 0
