"""The rows of the page's timeline, and the events that a click elsewhere on the page selects in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from torchwhy.page.arguments import ArgumentColumn, argument_columns
from torchwhy.page.counters import Counter, counters_of
from torchwhy.page.path_runs import PathRuns, path_runs
from torchwhy.page.rows import NO_ROW, drawn_rows
from torchwhy.trace.derived.autograd import autograd
from torchwhy.trace.derived.kernel_kinds import kinds_of_work
from torchwhy.trace.file.columns import Int32, Int64
from torchwhy.trace.meaning.kinds import GPU_WORK, Kind
from torchwhy.trace.model.device import devices_of, streams_of
from torchwhy.trace.model.intervals import NOTHING, Intervals
from torchwhy.trace.model.tree import Tree
from torchwhy.trace.tables.kernels import short_names
from torchwhy.wording import counted, safe

if TYPE_CHECKING:
    from torchwhy.finding import Finding
    from torchwhy.trace.model.trace import Trace

__all__ = [
    "DEVICE",
    "FRAMES",
    "HOST",
    "LABELS",
    "LONGEST_NAME",
    "Band",
    "StepMark",
    "Target",
    "Timeline",
    "by_frequency",
    "timeline_of",
]

FRAMES: Final = "frames"
HOST: Final = "host"
LABELS: Final = "labels"
DEVICE: Final = "device"

LONGEST_NAME: Final = 2000
"""Characters of a name that the page keeps."""

_SIDES: Final = {
    FRAMES: (Kind.PYTHON,),
    HOST: (Kind.ANNOTATION, Kind.OPERATOR, Kind.RUNTIME, Kind.OVERHEAD),
    LABELS: (Kind.DEVICE_ANNOTATION,),
    DEVICE: GPU_WORK,
}
_ON_HOST: Final = (*_SIDES[FRAMES], *_SIDES[HOST])
_ON_DEVICE: Final = (*_SIDES[LABELS], *_SIDES[DEVICE])
_DRAWN: Final = (*_ON_HOST, *_ON_DEVICE)
_LEFT_OUT: Final = {
    Kind.SYNC: ("record of a synchronisation", "records of synchronisations"),
    Kind.GRAPH_NODE: ("node of a graph without work", "nodes of graphs without work"),
    Kind.COUNTER_RANGE: ("range of hardware counters", "ranges of hardware counters"),
}


@dataclass(frozen=True)
class Band:
    """The rows of one thread or stream. A thread's Python frames and a stream's annotations are separate bands.

    Attributes:
        label: such as "thread 7 (python)" or "GPU 0 stream 7".
        side: `FRAMES`, `HOST`, `LABELS` or `DEVICE`.
        rows: how many.
        source: of which rank it is, or "".
    """

    label: str
    side: str
    rows: int
    source: str = ""


@dataclass(frozen=True)
class StepMark:
    """A step: its name, and when it began and ended on the host and ended on the device, nanoseconds."""

    name: str
    start: int
    end: int
    device_end: int


@dataclass(frozen=True)
class Target:
    """The events and times that a finding refers to.

    Attributes:
        title: of the finding.
        stretches: of time.
        evidence: the events of each entry.
        stake: what its fix can save at most, nanoseconds; 0 where there is nothing to fix.
    """

    title: str
    stretches: Intervals
    evidence: tuple[Int32, ...]
    stake: int = 0


@dataclass(frozen=True)
class Timeline:
    """The drawn events of a trace, band by band, row by row, by start. Times are nanoseconds from its beginning.

    Attributes:
        bands: threads and streams, from the top.
        row_sizes: how many events each row has.
        start, end: of each event.
        name: of each event, an index into `names`.
        names: the most frequent first; foreign text made safe.
        short_names: a shorter name of each, of kernels; "" without one.
        category: the kind of device work of each name, one of `trace.kinds()`; "" for what runs on the host.
        kind: a `Kind` of each event.
        launch, work: events tied by an id: the call, and what it put on a device; by `work`.
        forward, backward: operators tied by a number: that of the forward pass, and the one of the backward pass that
            it led to; by `backward`.
        arguments: what the trace keeps of them.
        window: what findings are about, (start, end).
        steps: the rounds of the program's loop.
        findings, parts: what a click shows.
        path: the critical path.
        counters: curves below the rows.
        notes: what isn't drawn, and how exact times are, in sentences.
        position: for each row of the trace its event here, or -1.
    """

    bands: tuple[Band, ...]
    row_sizes: Int64
    start: Int64
    end: Int64
    name: Int32
    names: tuple[str, ...]
    short_names: tuple[str, ...]
    category: tuple[str, ...]
    kind: npt.NDArray[np.uint8]
    launch: Int32
    work: Int32
    forward: Int32
    backward: Int32
    arguments: tuple[ArgumentColumn, ...]
    window: tuple[int, int]
    steps: tuple[StepMark, ...]
    findings: tuple[Target, ...]
    parts: Mapping[str, Intervals]
    path: PathRuns
    counters: tuple[Counter, ...]
    notes: tuple[str, ...]
    position: Int32

    def __len__(self) -> int:
        return len(self.start)

    @property
    def row(self) -> Int64:
        """The row of each event, counted over all bands."""
        return np.repeat(np.arange(len(self.row_sizes)), self.row_sizes)


def timeline_of(
    trace: Trace, findings: Sequence[Finding] = (), parts: Mapping[str, Intervals] | None = None
) -> Timeline:
    """Lay out the events of a trace.

    Args:
        trace: a loaded trace.
        findings: what the page lists, in its order.
        parts: the stretches of each part of the breakdown, by name, in the trace's own time.
    """
    events, base = trace.events, trace.beginning
    bands, rows, row = _banded(trace)
    chosen = np.argsort(row, kind="stable")
    rows, row = rows[chosen], row[chosen]
    position = np.full(len(events) + 1, -1, np.int32)
    position[rows] = np.arange(len(rows), dtype=np.int32)
    name, names = _names(trace, rows)
    short = trace.derived(short_names)
    shortened = {safe(long)[:LONGEST_NAME]: safe(brief)[:LONGEST_NAME] for long, brief in short.items()}
    links = trace.links
    work, launch = position[links.work], position[links.launch]
    launch, work = _tied(launch, work)
    passes = trace.derived(autograd)
    forward, backward = _tied(position[passes.forward], position[passes.backward])
    window = trace.window
    return Timeline(
        bands=bands,
        row_sizes=np.bincount(row, minlength=sum(band.rows for band in bands)),
        start=events.ts[rows] - base,
        end=events.end[rows] - base,
        name=name,
        names=names,
        short_names=tuple(found if (found := shortened.get(each, "")) != each else "" for each in names),
        category=_categories(trace, position, name, len(names)),
        kind=events.kind[rows],
        launch=launch,
        work=work,
        forward=forward,
        backward=backward,
        arguments=argument_columns(trace, rows),
        window=(window.start - base, window.end - base),
        steps=tuple(
            StepMark(safe(step.name), step.start - base, step.end - base, step.device_end - base)
            for step in trace.steps_found
        ),
        findings=tuple(
            Target(
                safe(finding.title),
                _moved(finding.stretches or NOTHING, base),
                tuple(_events(position, item.rows) for item in finding.evidence),
                0 if finding.severity == "info" else round(finding.time_us * 1000),
            )
            for finding in findings
        ),
        parts={each: _moved(when, base) for each, when in (parts or {}).items()},
        path=path_runs(trace, position),
        counters=counters_of(trace),
        notes=_notes(trace, len(rows)),
        position=position[:-1],
    )


def _tied(first: Int32, second: Int32) -> tuple[Int32, Int32]:
    """The pairs of which both are drawn, by the second."""
    there = np.flatnonzero((first >= 0) & (second >= 0))
    there = there[np.argsort(second[there], kind="stable")]
    return first[there], second[there]


def _categories(trace: Trace, position: Int32, name: Int32, names: int) -> tuple[str, ...]:
    """The kind of device work of each name."""
    found = [""] * names
    for one in trace.derived(kinds_of_work):
        events = position[one.rows]
        for number in np.unique(name[events[events >= 0]]).tolist():
            found[number] = one.kind
    return tuple(found)


def _moved(when: Intervals, base: int) -> Intervals:
    return Intervals(when.starts - base, when.ends - base)


def _events(position: Int32, rows: Int32) -> Int32:
    found = position[rows]
    return np.sort(found[found >= 0])


def _banded(trace: Trace) -> tuple[tuple[Band, ...], Int32, Int64]:
    """The bands from the top, the drawn rows of the trace in any order, and the row each is drawn in."""
    events = trace.events
    trees = {side: Tree(events, *kinds) for side, kinds in _SIDES.items()}
    drawn = {side: drawn_rows(events, tree) for side, tree in trees.items()}
    heights = {side: _heights(events.lane[tree.rows], drawn[side], len(events.lanes)) for side, tree in trees.items()}
    begins = {
        side: np.searchsorted(events.lane[tree.rows], np.arange(len(events.lanes))) for side, tree in trees.items()
    }
    several = len({lane.process for lane in events.lanes if lane.process}) > 1
    bands: list[Band] = []
    first = {side: np.zeros(len(events.lanes), np.int64) for side in trees}
    total = 0
    for lane in _lanes_from_the_top(trace):
        for side in trees:
            if height := int(heights[side][lane]):
                bands.append(
                    Band(_label(trace, lane, int(trees[side].rows[begins[side][lane]]), several), side, height)
                )
                first[side][lane] = total
                total += height
    rows, places = [], []
    for side, tree in trees.items():
        shown = drawn[side] != NO_ROW
        rows.append(tree.rows[shown])
        places.append(first[side][events.lane[rows[-1]]] + drawn[side][shown])
    return tuple(bands), np.concatenate(rows), np.concatenate(places)


def _heights(lane: Int32, row: Int32, lanes: int) -> Int64:
    found = np.zeros(lanes, np.int64)
    np.maximum.at(found, lane, row + 1)
    return found


def _lanes_from_the_top(trace: Trace) -> list[int]:
    """Threads by their number of events, that of the program's loop first, each with the streams it launches on."""
    events, links = trace.events, trace.links
    count = len(events.lanes)
    size, host, device = (
        np.bincount(events.lane[events.rows(*kinds)], minlength=count) for kinds in (_DRAWN, _ON_HOST, _ON_DEVICE)
    )
    known = links.launch >= 0
    pairs = events.lane[links.work[known]].astype(np.int64) * count + events.lane[links.launch[known]]
    pairs, times = np.unique(pairs, return_counts=True)
    pairs = pairs[np.argsort(times, kind="stable")]
    launcher = dict(
        zip((pairs // count).tolist(), (pairs % count).tolist(), strict=True)
    )  # the most frequent comes last
    lanes = np.flatnonzero(size).tolist()
    main = trace.main_lane
    rank = {lane: (lane != main, not host[lane], -int(size[lane]), lane) for lane in lanes}

    def key(lane: int) -> tuple[object, ...]:
        if device[lane] and not host[lane]:
            owner = launcher.get(lane, main)
            return (*rank.get(owner, (True, True, 0, 0)), 1, -int(size[lane]), lane)
        return (*rank[lane], 0, 0, lane)

    return sorted(lanes, key=key)


def _label(trace: Trace, lane: int, row: int, several: bool) -> str:
    """The name of a band, from one of its events, with its process where there are several."""
    events = trace.events
    label, process = (safe(text)[:200] for text in (events.lanes[lane].label, events.lanes[lane].process))
    if events.kind[row] in _ON_DEVICE:
        one = np.array([row], np.int32)
        label = f"GPU {devices_of(events, one)[0]} stream {streams_of(events, one)[0]}"
    return f"{process}, {label}" if process and several else label


def _names(trace: Trace, rows: Int32) -> tuple[Int32, tuple[str, ...]]:
    """The number of each event's name, and the names, the most frequent first."""
    events = trace.events
    used, which = np.unique(events.name[rows], return_inverse=True)
    numbers: dict[str, int] = {}
    texts = [safe(events.texts[i] if i >= 0 else "")[:LONGEST_NAME] for i in used.tolist()]
    number = np.array([numbers.setdefault(text, len(numbers)) for text in texts], np.int64)
    name = number[which.reshape(-1)] if len(number) else np.empty(0, np.int64)
    return by_frequency(name, list(numbers))


def by_frequency(name: npt.NDArray[np.integer[Any]], known: Sequence[str]) -> tuple[Int32, tuple[str, ...]]:
    """Number names again, the most frequent first.

    Args:
        name: of each event, an index into `known`.
        known: the names.

    Returns:
        An index into the second for each event, and the names in their new order.
    """
    order = np.argsort(-np.bincount(name, minlength=len(known)), kind="stable")
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return place[name], tuple(known[i] for i in order.tolist())


def _notes(trace: Trace, drawn: int) -> tuple[str, ...]:
    kinds = trace.events.count_by_kind
    notes = [f"Not drawn: {counted(int(kinds[kind]), *noun)}." for kind, noun in _LEFT_OUT.items() if kinds[kind]]
    whole = int(kinds[list(_DRAWN)].sum())
    if whole > drawn:
        notes.append(f"Not drawn: {counted(whole - drawn, 'event')} that overlap many others of their row.")
    return tuple(notes)
