"""The work of each thread and stream during a stretch of time, in few rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite
from typing import Final

import msgspec
import numpy as np

from torchwhy.errors import ArgumentError
from torchwhy.finding import Finding
from torchwhy.present.document import Column, Document, Name, Row, Table
from torchwhy.questions.opening import Recording, found_by_id, trace_of
from torchwhy.rules.evidence import where
from torchwhy.schema import SCHEMA
from torchwhy.trace.derived.host_timeline import HostTimeline
from torchwhy.trace.file.columns import Int32, Int64
from torchwhy.trace.model.trace import Trace
from torchwhy.trace.tables.kernels import short_names
from torchwhy.wording import counted, duration_ns, percent

__all__ = ["TimelinePart", "timeline"]

_SLICES: Final = 16
"""A lane with more changes is divided into this number of slices of equal length."""

_LANES: Final = 8
_AROUND: Final = 0.25
"""How much is shown before and after a finding's longest stretch, as a fraction of it."""


class TimelinePart(msgspec.Struct, frozen=True):
    """A lane during a part of the stretch: what it does most, how many other names there are; `start_us` from the
    window's beginning.
    """

    lane: str
    start_us: float
    end_us: float
    busy: float
    mostly: str
    events: int
    names: int


class TimelineAnswer(msgspec.Struct, frozen=True):
    """A stretch of time; `start_us` and `end_us` from the window's beginning."""

    schema: int
    file: str
    start_us: float
    end_us: float
    lanes: int
    parts: tuple[TimelinePart, ...]


@dataclass(frozen=True)
class _Pieces:
    """The pieces of a lane, in order: disjoint, clipped to the stretch."""

    lane: str
    starts: Int64
    ends: Int64
    rows: Int32

    @property
    def busy(self) -> int:
        return int((self.ends - self.starts).sum())


def timeline(recording: Recording, id: str | None = None, range: str | None = None) -> Document:
    """Return what every thread and stream does during a stretch of time: the innermost call, the device's work.

    Args:
        recording: which.
        id: of a finding: the stretch is around the longest that it is about.
        range: "A:B", milliseconds from the window's beginning, instead of that.

    Raises:
        ArgumentError: there is no such finding, the range makes no sense, or the recording is of several ranks.
    """
    opened = trace_of(recording, "timeline")
    trace = opened.trace
    found = found_by_id(opened, id) if id else None
    start, end = _range(range, trace) if range else _around(found, trace)
    lanes = sorted(_lanes(trace, start, end), key=lambda pieces: (-pieces.busy, pieces.lane))
    zero = trace.window.start
    parts = tuple(part for pieces in lanes[:_LANES] for part in _parts(trace, pieces, start, end))
    answer = TimelineAnswer(SCHEMA, opened.path, (start - zero) / 1000, (end - zero) / 1000, len(lanes), parts)
    return Document(opened.explained.title, (_table(answer, found),), answer, (), "timeline", opened.path)


def _table(answer: TimelineAnswer, found: Finding | None) -> Table:
    columns = (
        Column("from, ms", number=True),
        Column("to, ms", number=True),
        Column("lane"),
        Column("busy", number=True),
        Column("mostly"),
        Column("events", number=True, below=True),
    )
    length = (answer.end_us - answer.start_us) * 1000
    what = f" around {found.id}" if found else ""
    sentence = f"{duration_ns(length)}{what}, from {_ms(answer.start_us)} to {_ms(answer.end_us)} ms of the window."
    quiet = answer.lanes - len({part.lane for part in answer.parts})
    sentences = (sentence, *((f"{counted(quiet, 'further lane')} with less to do left out.",) if quiet else ()))
    rows = [_row(part, place) for part, place in zip(answer.parts, _places(answer.parts), strict=True)]
    if not rows:
        sentences = (*sentences, "No event was recorded in it.")
    return Table(columns, tuple(rows), "Timeline", sentences, ("part", "parts"), answers=True)


def _places(parts: Sequence[TimelinePart]) -> list[int]:
    """The place of each part among those of its lane, the one with most to do first: no lane is to lose all of them."""
    order = sorted(range(len(parts)), key=lambda i: (parts[i].start_us - parts[i].end_us) * parts[i].busy)
    seen: Counter[str] = Counter()
    places = [0] * len(parts)
    for i in order:
        places[i] = seen[parts[i].lane]
        seen[parts[i].lane] += 1
    return places


def _row(part: TimelinePart, place: int) -> Row:
    times = _ms(part.start_us), _ms(part.end_us)
    cells = (*times, Name(part.lane), percent(part.busy), _mostly(part), f"{part.events:,}")
    return Row(cells, weight=-place)


def _mostly(part: TimelinePart) -> Name:
    others = part.names - 1
    return Name(part.mostly, f" +{others}" if others > 0 else "")


def _ms(us: float) -> str:
    return f"{us / 1000:,.3f}"


def _range(text: str, trace: Trace) -> tuple[int, int]:
    first, colon, last = text.partition(":")
    try:
        begin, end = float(first), float(last)
    except ValueError:
        begin = end = float("nan")
    length = (trace.span[1] - trace.window.start) / 1e6
    if not colon or not isfinite(begin) or not isfinite(end) or end <= begin:
        raise ArgumentError(
            f"range must be A:B with A < B, in ms from the window's beginning, which has {length:,.3f} ms after it; "
            f"got {text[:40]!r}"
        )
    low, high = trace.span
    start = max(trace.window.start + int(max(begin, -1e9) * 1e6), low)
    stop = min(trace.window.start + int(min(end, 1e9) * 1e6), high)
    if stop <= start:
        before = (trace.window.start - low) / 1e6
        raise ArgumentError(f"range must overlap the recording, {-before:,.3f}:{length:,.3f} ms; got {text[:40]!r}")
    return start, stop


def _around(found: Finding | None, trace: Trace) -> tuple[int, int]:
    """The longest stretch of a finding with a part of its length around it; the window without one."""
    low, high = trace.span
    when = found.stretches if found else None
    if found and not when:
        when = trace.events.times_of(np.concatenate([np.empty(0, np.int32), *(item.rows for item in found.evidence)]))
    if not when:
        return max(trace.window.start, low), min(trace.window.end, high)
    longest = int(when.lengths.argmax())
    begin, end = int(when.starts[longest]), int(when.ends[longest])
    margin = max(int((end - begin) * _AROUND), 1)
    return max(begin - margin, low), min(end + margin, high)


def _lanes(trace: Trace, start: int, end: int) -> list[_Pieces]:
    """What each lane does between two moments; lanes without anything are left out."""
    events, found = trace.events, []
    work = trace.links.work
    work = work[(events.ts[work] < end) & (events.end[work] > start)]
    for lane in np.unique(events.lane[work]).tolist():
        rows = work[events.lane[work] == lane]
        found.append(_disjoint(where(trace, int(rows[0])), events.ts[rows], events.end[rows], rows, start, end))
    calls = trace.calls.rows
    calls = calls[(events.ts[calls] < end) & (events.end[calls] > start)]
    for lane in np.unique(events.lane[calls]).tolist():
        host = HostTimeline.of(events, trace.calls, lane)
        first = max(int(np.searchsorted(host.times, start, "right")) - 1, 0)
        last = int(np.searchsorted(host.times, end, "left"))
        times, rows = host.times[first:last], host.rows[first:last]
        until = np.append(host.times, end)[first + 1 : last + 1]
        known = rows >= 0
        label = events.lanes[lane].label
        found.append(_disjoint(label, times[known], until[known], rows[known], start, end))
    return [pieces for pieces in found if pieces.busy]


def _disjoint(lane: str, starts: Int64, ends: Int64, rows: Int32, start: int, end: int) -> _Pieces:
    """Pieces in order of time, clipped; what runs beside an earlier piece begins when that ends."""
    order = np.argsort(starts, kind="stable")
    starts, ends, rows = np.maximum(starts[order], start), np.minimum(ends[order], end), rows[order]
    if len(rows):
        reach = np.maximum.accumulate(ends)
        starts = np.maximum(starts, np.append(np.int64(start), reach[:-1]))
    lasting = ends > starts
    return _Pieces(lane, starts[lasting], ends[lasting], rows[lasting])


def _parts(trace: Trace, pieces: _Pieces, start: int, end: int) -> list[TimelinePart]:
    """The lane in few parts: its runs of one name, or slices of equal length where there are too many."""
    names = trace.events.name[pieces.rows]
    fresh = np.flatnonzero(np.append(True, names[1:] != names[:-1]))
    if len(fresh) <= _SLICES:
        bounds = np.append(fresh, len(names))
        edges = [(int(pieces.starts[a]), int(pieces.ends[b - 1])) for a, b in pairwise(bounds.tolist())]
    else:
        cuts = np.linspace(start, end, _SLICES + 1).astype(np.int64)
        edges = list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))
    joined: list[TimelinePart] = []
    for part in (_part(trace, pieces, begin, stop) for begin, stop in edges):
        if part is None:
            continue
        last = joined[-1] if joined else None
        if last and (last.mostly, last.names, last.end_us) == (part.mostly, part.names, part.start_us):
            joined[-1] = _joined(last, part)
        else:
            joined.append(part)
    return joined


def _joined(a: TimelinePart, b: TimelinePart) -> TimelinePart:
    """Two slices, one after the other, that read alike."""
    lengths = a.end_us - a.start_us, b.end_us - b.start_us
    busy = (a.busy * lengths[0] + b.busy * lengths[1]) / sum(lengths)
    return TimelinePart(a.lane, a.start_us, b.end_us, busy, a.mostly, a.events + b.events, a.names)


def _part(trace: Trace, pieces: _Pieces, begin: int, stop: int) -> TimelinePart | None:
    first, last = np.searchsorted(pieces.ends, begin, "right"), np.searchsorted(pieces.starts, stop, "left")
    if stop <= begin or first >= last:
        return None
    rows = pieces.rows[first:last]
    times = np.minimum(pieces.ends[first:last], stop) - np.maximum(pieces.starts[first:last], begin)
    names, which = np.unique(trace.events.name[rows], return_inverse=True)
    total = np.zeros(len(names), np.int64)
    np.add.at(total, which, times)
    texts = [trace.events.texts[int(name)] if name >= 0 else "" for name in names]
    most = min(range(len(names)), key=lambda i: (-int(total[i]), texts[i]))
    shorts = trace.derived(short_names)
    busy = float(times.sum()) / (stop - begin)
    count = len(np.unique(rows))
    name = shorts.get(texts[most], texts[most])
    zero = trace.window.start
    return TimelinePart(pieces.lane, (begin - zero) / 1000, (stop - zero) / 1000, busy, name, count, len(names))
