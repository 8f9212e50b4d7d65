"""Joins a trace of replayed graphs with recordings of their capture: adds who made each piece of work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from torchwhy.errors import TraceError
from torchwhy.trace.captures.matching import ALIKE, FEWEST, SOMEWHERE, Matches, match
from torchwhy.trace.captures.sequences import Recorded, Replays, Symbols, replays_of
from torchwhy.trace.file.columns import ABSENT, Argument, Columns, Flags, Int32, Int64
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.model.captured import Captured, Coverage, Nested
from torchwhy.wording import counted, enumeration

if TYPE_CHECKING:
    from torchwhy.trace.model.trace import Trace
    from torchwhy.trace.model.tree import Tree

__all__ = ["join"]

_OF_THE_RECORDING: Final = frozenset(
    {"correlation", "External id", "Sequence number", "Fwd thread id", "graph id", "graph node id", "Python id"}
    | {"Python parent id", "kernel", "stream", "device", "context", "name", "labels"}
)
"""Arguments that link events of one file, and say nothing in another."""

_CATEGORY: Final = {Kind.OPERATOR: "cpu_op", Kind.RUNTIME: "cuda_runtime", Kind.PYTHON: "python_function"}


def join(trace: Trace, columns: Columns, recordings: Sequence[Trace]) -> tuple[Columns, Captured]:
    """Find who made the work of replayed graphs; return the events with those added, and what was added.

    Args:
        trace: that replays graphs.
        columns: its events.
        recordings: of the capture of these graphs, or of the same program without graphs; launches of a capture
            show their kernel by the argument "kernel".

    Raises:
        TraceError: the trace replays no graph, or its graphs are not in the recordings.
    """
    symbols = Symbols()
    replays = replays_of(trace, symbols)
    if not len(replays):
        raise TraceError(_without_replays(trace))
    recorded = Recorded(recordings, symbols)
    matches = match(replays, recorded, symbols)
    if not matches.found.any():
        raise TraceError(_nothing_matches(trace, replays, recorded))
    added = _Added(trace, columns, replays, recorded, matches)
    return added.columns(), added.captured()


def _without_replays(trace: Trace) -> str:
    launches = len(trace.links.graph_launches)
    why = (
        f"the work of its {counted(launches, 'graph launch', 'graph launches')} was not recorded"
        if launches
        else "it launches no CUDA or HIP graph"
    )
    return f"{trace.file} has no work of replayed graphs that a capture could name: {why}"


def _nothing_matches(trace: Trace, replays: Replays, recorded: Recorded) -> str:
    files = [one.file for one in recorded.traces]
    names = files[0] if len(files) == 1 else f"{files[0]} and {counted(len(files) - 1, 'other recording')}"
    lengths = np.diff(replays.bounds)
    mine = f"the {counted(len(replays), 'graph launch', 'graph launches')} of {trace.file} ({_range(lengths)} each)"
    unnamed = f"the launches of {counted(recorded.unnamed, 'captured graph')} there do not name their kernels"
    if not len(recorded):
        why = (
            f"{unnamed} (CUDA's don't), and nothing ran outside of a capture: record some iterations without graphs"
            if recorded.unnamed
            else "no captured graph, and no work with its launch, is recorded there"
        )
        return f"nothing in {names} can be compared with {mine}: {why}"
    theirs = [counted(len(recorded.whole), "captured graph")] if recorded.whole else []
    ran = sum(end - start for start, end in recorded.free)
    theirs += [f"{counted(ran, 'piece')} of work launched without graphs"] if ran else []
    alike = int(np.isin(replays.symbol, recorded.symbol).sum())
    reasons = [
        f"no graph has the same kernels in the same order with the same grids, or {ALIKE:.0%} of a captured one",
        f"pieces of work with a name that occurs there: {alike:,} of {len(replays.symbol):,}",
        *([unnamed] if recorded.unnamed else []),
        *([f"graphs of fewer than {FEWEST} pieces need their capture"] if ran and lengths.min() < FEWEST else []),
    ]
    reason = "; ".join(reasons)
    return f"{names} does not hold what {mine} replay. Compared with {enumeration(theirs)}: {reason}"


def _range(lengths: Int64) -> str:
    low, high = int(lengths.min()), int(lengths.max())
    return counted(low, "piece") + " of work" if low == high else f"{low:,} to {high:,} pieces of work"


@dataclass(frozen=True)
class _Template:
    """The calls around some launches of one recording, to be repeated for each replay.

    Attributes:
        source: the recording.
        rows: operators and launches there, nested.
        parent: for each its parent's place among them, or -1.
        at: for each piece of a graph's work the place of its launch among them, or -1.
        placed: for each of the rows whether the frames around it are certain.
        frames: rows of the Python frames around those.
        launches: which launches of graphs replay it.
    """

    source: int
    rows: Int32
    parent: Int64
    at: Int64
    placed: Flags
    frames: Int32
    launches: Int64


class _Added:
    """The rows to add: frames once for each recording, then operators and launches for each replay."""

    def __init__(self, trace: Trace, columns: Columns, replays: Replays, recorded: Recorded, matches: Matches) -> None:
        self._trace, self._columns = trace, columns
        self._replays, self._recorded, self._matches = replays, recorded, matches
        self._first = len(columns)
        self._templates = [
            one
            for i, places in enumerate(matches.kinds)
            if (one := _template(recorded, places, np.flatnonzero(matches.of == i))) is not None
        ]
        self._lay_out()

    def _lay_out(self) -> None:
        """Number all rows to add: their recording, their row there, their graph launch and their parents."""
        traces = self._recorded.traces
        source, origin, launch, calls, frames = ([np.zeros(0, np.int64)] for _ in range(5))
        times: list[Int64] = [np.zeros(0, np.int64)]
        place_of: list[Int64] = []
        count = 0
        for i, trace in enumerate(traces):
            mine = [one for one in self._templates if one.source == i]
            used, seen = np.zeros(len(trace.events), np.int64), np.zeros(len(trace.events), np.bool_)
            first = np.full(len(trace.events), np.iinfo(np.int64).max)
            for one in mine:
                seen[one.frames] = True
                here = self._recorded_around(trace, one)
                used[one.frames] = np.maximum(used[one.frames], np.where(here, 0, len(one.launches)))
                first[one.frames] = np.minimum(first[one.frames], one.launches.min())
            rows = np.flatnonzero(seen)
            place = np.full(len(trace.events) + 1, -1, np.int64)
            place[rows] = self._first + count + np.arange(len(rows))
            place_of.append(place)
            source.append(np.full(len(rows), i))
            origin.append(rows)
            launch.append(first[rows])
            calls.append(np.full(len(rows), -1))
            frames.append(place[_above(trace)[rows]])
            times.append(used[rows])
            count += len(rows)
        self._shared = count
        work: list[Int64] = [np.zeros(0, np.int64)]
        made_by: list[Int64] = [np.zeros(0, np.int64)]
        for one in self._templates:
            size, repeats = len(one.rows), len(one.launches)
            base = self._first + count + size * np.arange(repeats)
            source.append(np.full(size * repeats, one.source))
            origin.append(np.tile(one.rows, repeats))
            launch.append(np.repeat(one.launches, size))
            graph = self._replays.launch[one.launches][:, None]
            calls.append(np.where(one.parent >= 0, base[:, None] + one.parent, graph).reshape(-1))
            around = np.where(one.placed, place_of[one.source][_above(traces[one.source])[one.rows]], -1)
            frames.append(np.tile(around, repeats))
            times.append(np.ones(size * repeats, np.int64))
            named = np.flatnonzero(one.at >= 0)
            work.append(self._replays.work[(self._replays.bounds[one.launches][:, None] + named).reshape(-1)])
            made_by.append((base[:, None] + one.at[named]).reshape(-1))
            count += size * repeats
        self._source, self._origin, self._launch = (np.concatenate(part) for part in (source, origin, launch))
        self._calls, self._frames = np.concatenate(calls), np.concatenate(frames)
        self._times = np.concatenate(times)
        self._work, self._made_by = np.concatenate(work), np.concatenate(made_by)

    def _recorded_around(self, recording: Trace, template: _Template) -> Flags:
        """Which of the captured frames are around the launch of the graph too: those calls are recorded there."""
        trace, events = self._trace, recording.events
        launch = int(self._replays.launch[template.launches[0]])
        around = {trace.name(row) for row in trace.frames.ancestors(launch)}
        return np.array([events.texts[i] in around for i in events.name[template.frames].tolist()], np.bool_)

    def captured(self) -> Captured:
        order = np.argsort(self._work, kind="stable")
        copies = np.arange(self._shared, len(self._origin))
        inside = np.zeros(len(self._origin), np.int64)
        for i, trace in enumerate(self._recorded.traces):
            mine = self._source == i
            inside[mine] = _places(trace.frames)[self._origin[mine]]
        shared = np.arange(len(self._origin)) < self._shared
        nested = np.lexsort((shared, inside, self._source))  # an operator is a leaf here: before what is around it
        return Captured(
            self._first,
            Nested(
                (self._first + copies).astype(np.int32),
                self._calls[copies].astype(np.int32),
                self._replays.launch[self._launch[copies]],
            ),
            Nested((self._first + nested).astype(np.int32), self._frames[nested].astype(np.int32)),
            self._work[order].astype(np.int32),
            self._made_by[order].astype(np.int32),
            self._times.astype(np.int32),
            self._coverage(),
        )

    def _coverage(self) -> Coverage:
        replays, matches = self._replays, self._matches
        lengths = np.diff(replays.bounds)
        unfound = int(lengths[~matches.found].sum())
        without = operators = 0
        for i, places in enumerate(matches.kinds):
            launches = int(((matches.of == i) & matches.found).sum())
            without += int((places < 0).sum()) * launches
            operators += int((places >= SOMEWHERE).sum()) * launches
        return Coverage(
            tuple(one.file for one in self._recorded.traces),
            len(replays),
            int(matches.found.sum()),
            len(replays.work),
            len(replays.work) - unfound - without,
            operators,
            without,
        )

    def columns(self) -> Columns:
        """The events of the trace with the added ones."""
        columns, events = self._columns, self._trace.events
        row = self._replays.launch[self._launch]
        count = len(row)
        texts = list(columns.texts)
        numbers = {text: i for i, text in enumerate(texts)}

        def number(text: str) -> int:
            found = numbers.setdefault(text, len(texts))
            if found == len(texts):
                texts.append(text)
            return found

        name, category = np.full(count, -1, np.int32), np.full(count, -1, np.int32)
        arguments: dict[str, list[tuple[Int32, Int64]]] = {}
        for i, trace in enumerate(self._recorded.traces):
            mine = np.flatnonzero(self._source == i)
            if not len(mine):
                continue
            theirs, origin = trace.events, self._origin[mine]
            name[mine] = _translated(theirs.name[origin], theirs.texts, number)
            for kind, text in _CATEGORY.items():
                category[mine[theirs.kind[origin] == kind]] = number(text)
            for key, argument in theirs.arguments.items():
                if key in _OF_THE_RECORDING or not len(argument.rows):
                    continue
                at = np.minimum(np.searchsorted(argument.rows, origin), len(argument.rows) - 1)
                has = argument.rows[at] == origin
                values = argument.values[at[has]]
                if values.dtype == np.int32:
                    values = _translated(values, theirs.texts, number)
                if has.any():
                    arguments.setdefault(key, []).append(((self._first + mine[has]).astype(np.int32), values))
        merged = dict(columns.arguments)
        for key, parts in arguments.items():
            old = merged.get(key)
            rows = np.concatenate([*([old.rows] if old else []), *(part[0] for part in parts)])
            values = np.concatenate([*([old.values] if old else []), *(part[1] for part in parts)])
            order = np.argsort(rows, kind="stable")
            merged[key] = Argument(rows[order], values[order])
        return replace(
            columns,
            phase=np.append(columns.phase, np.full(count, ord("X"), columns.phase.dtype)),
            ts=np.append(columns.ts, events.ts[row]),
            dur=np.append(columns.dur, np.zeros(count, np.int64)),
            category=np.append(columns.category, category),
            name=np.append(columns.name, name),
            pid=np.append(columns.pid, columns.pid[row]),
            tid=np.append(columns.tid, columns.tid[row]),
            flow=np.append(columns.flow, np.full(count, ABSENT)),
            offset=np.append(columns.offset, np.full(count, -1)),
            arguments=merged,
            texts=texts,
        )


def _translated(ids: Int32, texts: Sequence[str], number: Callable[[str], int]) -> Int32:
    distinct, which = np.unique(ids, return_inverse=True)
    found = [number(texts[i]) if i >= 0 else -1 for i in distinct.tolist()]
    return np.array(found, np.int32)[which.reshape(-1)]


def _template(recorded: Recorded, places: Int64, launches: Int64) -> _Template | None:
    """The calls and frames around the launches at some places; None where none of them is known."""
    known = places >= 0
    if not known.any() or not len(launches):
        return None
    source = int(recorded.source[places[known][0] % SOMEWHERE])
    trace = recorded.traces[source]
    launch = recorded.row[np.where(known, places % SOMEWHERE, 0)]
    operators = np.append(trace.calls.nearest(trace.events.kind == Kind.OPERATOR), np.int32(-1))
    above = operators[np.append(trace.calls.parent, np.int32(-1))]
    keep = _closed(launch[known], above)
    rows = np.flatnonzero(keep)
    rows = rows[np.argsort(_places(trace.calls)[rows], kind="stable")]
    place = np.full(len(trace.events) + 1, -1, np.int64)
    place[rows] = np.arange(len(rows))
    over = _above(trace)
    placed = ~_closed(launch[places >= SOMEWHERE], above)[rows]
    inner = over[rows[placed]]
    frames = np.flatnonzero(_closed(np.unique(inner[inner >= 0]), over))
    return _Template(
        source,
        rows.astype(np.int32),
        place[above[rows]],
        np.where(known, place[launch], -1),
        placed,
        frames.astype(np.int32),
        launches,
    )


def _closed(rows: Int64, above: Int32) -> Flags:
    """These rows and everything above them."""
    found = np.zeros(len(above), np.bool_)
    while len(rows):
        found[rows] = True
        rows = np.unique(above[rows])
        rows = rows[rows >= 0]
        rows = rows[~found[rows]]
    return found


def _above(trace: Trace) -> Int32:
    """For each row the innermost Python frame around it, itself not included, or -1; one more entry for -1."""
    return trace.derived(_frames_above)


def _frames_above(trace: Trace) -> Int32:
    if not trace.has_stacks:
        return np.full(len(trace.events) + 1, -1, np.int32)
    nearest = np.append(trace.frames.nearest(trace.events.kind == Kind.PYTHON), np.int32(-1))
    found: Int32 = nearest[np.append(trace.frames.parent, np.int32(-1))]
    return found


def _places(tree: Tree) -> Int64:
    found = np.full(len(tree.parent), -1, np.int64)
    found[tree.nested] = np.arange(len(tree.nested))
    return found
