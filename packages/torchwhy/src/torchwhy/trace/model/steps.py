"""The steps of a program: as it announced them, or as its repetition lets one infer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.annotations import STEP, mark_of, step_number
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.serving import SERVER_STEP, phase
from torchwhy.trace.model.events import Events
from torchwhy.trace.model.infer_steps import Span, infer_spans
from torchwhy.trace.model.links import Links
from torchwhy.trace.model.tree import Tree

__all__ = ["Step", "find_steps", "main_phase"]


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
        return step_number(self.name)

    @property
    def mark(self) -> str:
        """The label or call that repeats, of an inferred step."""
        return mark_of(self.name)[0]

    @cached_property
    def phase(self) -> str:
        """The phase of an inference server's step, such as "prefill" or "decode"; "" for other steps.

        Steps of different phases do different work: they are not to be compared with each other.
        """
        return phase(self.name)


def main_phase(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Return the steps of the phase that takes the most time: all, unless a server announced them."""
    phases = [step.phase for step in steps]
    if len(set(phases)) < 2:
        return steps
    times: dict[str, int] = {}
    for step, name in zip(steps, phases, strict=True):
        times[name] = times.get(name, 0) + step.duration
    main = max(times, key=lambda name: times[name])
    return tuple(step for step, name in zip(steps, phases, strict=True) if name == main)


def find_steps(events: Events, tree: Tree, links: Links) -> tuple[Step, ...]:
    """Return the steps in order of time; none where nothing repeats for sure."""
    announced = _without_end(events, _distinct(events, events.of(STEP))) or _of_server(events)
    if announced:
        spans = [
            Span(events.named(row), row, int(events.lane[row]), int(events.ts[row]), int(events.end[row]))
            for row in announced
        ]
        return _with_device(spans, events, links, inferred=False)
    return _with_device(infer_spans(events, tree, links), events, links, inferred=True)


def _distinct(events: Events, rows: Int32) -> list[int]:
    """One of the steps with the same number: exporters have repeated them on other lanes, where they are shorter."""
    lanes, which = np.unique(events.lane[rows], return_inverse=True)
    if len(lanes) > 1:
        time = np.bincount(which, weights=events.dur[rows])
        rows = rows[np.argsort(-time[which], kind="stable")]
    best: dict[object, int] = {}
    for row in rows.tolist():
        name = events.named(row)
        key = name if name[-1:].isdecimal() else row  # "ProfilerStep*": each name is a different step
        if key not in best or (events.lane[row] == events.lane[best[key]] and events.dur[row] > events.dur[best[key]]):
            best[key] = row
    found = sorted(best.values(), key=lambda row: (int(events.ts[row]), -int(events.dur[row])))
    return _one_after_another(events, found)


def _without_end(events: Events, rows: list[int]) -> list[int]:
    """Leave out a last step that calls nothing: the loop was over when `step()` began it."""
    calls = np.sort(events.ts[events.rows(Kind.OPERATOR, Kind.RUNTIME)])
    counts = np.searchsorted(calls, events.end[rows]) - np.searchsorted(calls, events.ts[rows])
    return rows[:-1] if len(rows) > 1 and not counts[-1] and counts[:-1].all() else rows


def _of_server(events: Events) -> list[int]:
    """The rounds of an inference server's scheduler, on the thread with the most of them."""
    rows = events.of(SERVER_STEP)
    if not len(rows):
        return []
    lane = int(np.bincount(events.lane[rows]).argmax())
    return _one_after_another(events, rows[events.lane[rows] == lane].tolist())


def _one_after_another(events: Events, rows: list[int]) -> list[int]:
    """Leave out steps that begin well inside the one before: two loops profiled at once, or a lane seen twice."""
    kept = rows[:1]
    for row in rows[1:]:
        last = kept[-1]
        if int(events.ts[row]) >= int(events.end[last]) - int(events.dur[last]) // 100:
            kept.append(row)
    return kept


def _with_device(spans: list[Span], events: Events, links: Links, *, inferred: bool) -> tuple[Step, ...]:
    launched = links.launch >= 0
    times = events.ts[links.launch[launched]]
    order = np.argsort(times, kind="stable")
    times, ends = times[order], events.end[links.work[launched]][order]
    bounds = np.array([(span.start, span.end) for span in spans], np.int64).reshape(-1, 2)
    places = np.searchsorted(times, bounds)
    # The latest end from each step's first place to after its last; of steps that launched nothing it isn't used.
    latest = np.maximum.reduceat(np.append(ends, 0), places.reshape(-1))[::2] if len(spans) else ends[:0]
    last = np.where(places[:, 0] < places[:, 1], np.maximum(latest, bounds[:, 1]), bounds[:, 1]).tolist()
    return tuple(
        Step(span.name, span.row, span.lane, span.start, span.end, device_end, inferred)
        for span, device_end in zip(spans, last, strict=True)
    )
