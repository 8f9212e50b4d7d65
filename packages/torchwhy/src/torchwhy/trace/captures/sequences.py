"""Device work as sequences of symbols: of each graph launch in a replay, of the launches in a capture or eager run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from torchwhy.trace.derived.launches import captured_graphs, capturing
from torchwhy.trace.derived.ownership import own_frames
from torchwhy.trace.file.columns import ABSENT, Flags, Int32, Int64
from torchwhy.trace.meaning.frames import MODULE
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.runtime import COPY_CALL, FILL_CALL, GRAPH_LAUNCH, LAUNCH
from torchwhy.trace.model.device import streams_of

if TYPE_CHECKING:
    from torchwhy.trace.model.trace import Trace

__all__ = ["NOWHERE", "Recorded", "Replays", "Symbols", "recorded_launches", "replays_of"]

COPY: Final = 0
FILL: Final = 1
UNNAMED: Final = -1
"""The symbol of a launch whose kernel's name wasn't recorded."""

NOWHERE: Final = 0

_SEED: Final = 20
_NAMED_COPIES: Final = {"__amd_rocclr_copyBuffer": COPY, "__amd_rocclr_fillBuffer": FILL}
"""Kernels with which HIP copies and fills in a graph, by the beginning of their names."""


class Symbols:
    """Numbers for texts, the same in all traces: names of kernels, and grids and blocks as they are written."""

    def __init__(self) -> None:
        self._names: dict[str, int] = {"": UNNAMED, "copy": COPY, "fill": FILL}
        self._texts: dict[str, int] = {}

    def names(self, trace: Trace, ids: Int32) -> Int64:
        """The symbol of each name (index into the trace's texts); `UNNAMED` of -1."""
        return _numbered(trace.events.texts, ids, self._name)

    def texts(self, trace: Trace, ids: Int32) -> Int64:
        """The number of each text; -1 of -1."""
        return _numbered(trace.events.texts, ids, lambda text: self._texts.setdefault(text, len(self._texts)))

    def weights(self) -> Int64:
        """A random odd number per symbol of a name, by which sequences are hashed."""
        return np.random.default_rng(_SEED).integers(1, 2**62, max(self._names.values()) + 1) | 1

    def _name(self, text: str) -> int:
        for beginning, symbol in _NAMED_COPIES.items():
            if text.startswith(beginning):
                return symbol
        return self._names.setdefault(f"kernel {text}", len(self._names))


def _numbered(texts: Sequence[str], ids: Int32, number: Callable[[str], int]) -> Int64:
    distinct, which = np.unique(ids, return_inverse=True)
    numbers = [number(texts[i]) if i >= 0 else -1 for i in distinct.tolist()]
    return np.array(numbers, np.int64)[which.reshape(-1)]


@dataclass(frozen=True)
class Replays:
    """The launches of graphs that left work, by thread and start, and that work.

    Attributes:
        launch: row of each launch.
        lane: its thread.
        bounds: the work of launch i is `work[bounds[i]:bounds[i + 1]]`.
        work: rows, in the order of start; of a graph with branches in the order of its nodes, where that is recorded.
        symbol, grid, block: of each piece of work.
        stream: of each piece of work where the order of the graph isn't known, since it ran on several streams; else 0.
    """

    launch: Int32
    lane: Int32
    bounds: Int64
    work: Int32
    symbol: Int64
    grid: Int64
    block: Int64
    stream: Int64

    def __len__(self) -> int:
        return len(self.launch)


def replays_of(trace: Trace, symbols: Symbols) -> Replays:
    """Find the launches of graphs with their work."""
    events, links = trace.events, trace.links
    graph = np.zeros(len(events) + 1, np.bool_)
    graph[links.graph_launches] = True
    graph[-1] = False
    chosen = graph[links.launch]
    work, launch = links.work[chosen], links.launch[chosen]
    launches = np.unique(launch)
    launches = launches[np.lexsort((events.ts[launches], events.lane[launches]))].astype(np.int32)
    number = np.zeros(len(events), np.int64)
    number[launches] = np.arange(len(launches))
    which = number[launch]
    stream = streams_of(events, work).astype(np.int64)
    node = events.integers("graph node id", work)
    least, most = (_least(which, values, len(launches)) for values in (stream, -stream))
    several = least != -most
    nodes = (_least(which, node, len(launches)) != ABSENT) & several
    order = np.lexsort((np.where(nodes[which], node, events.ts[work]), which))
    work, which, stream = work[order], which[order], stream[order]
    bounds = np.searchsorted(which, np.arange(len(launches) + 1))
    return Replays(
        launches,
        events.lane[launches],
        bounds.astype(np.int64),
        work,
        _symbols_of(trace, work, symbols),
        symbols.texts(trace, events.text_ids("grid", work)),
        symbols.texts(trace, events.text_ids("block", work)),
        np.where((several & ~nodes)[which], stream + 1, 0),
    )


def _least(which: Int64, values: Int64, count: int) -> Int64:
    found = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(found, which, values)
    return found


def _symbols_of(trace: Trace, work: Int32, symbols: Symbols) -> Int64:
    kind = trace.events.kind[work]
    found = symbols.names(trace, np.where(kind == Kind.KERNEL, trace.events.name[work], -1).astype(np.int32))
    found[kind == Kind.MEMCPY], found[kind == Kind.MEMSET] = COPY, FILL
    return found


class Recorded:
    """The launches of some captures and eager runs, one after another, and who made them.

    Attributes:
        traces: the recordings.
        source: for each launch the index of its recording.
        row: its row there.
        symbol, grid, block: of what it launches; -1 where that isn't recorded.
        whole: stretches (start, end) that are the capture of one graph each.
        free: stretches any part of which may be that of a graph: the launches of a thread that runs without graphs.
        unnamed: captures of graphs whose launches don't show which kernels they launch.
    """

    def __init__(self, traces: Sequence[Trace], symbols: Symbols) -> None:
        self.traces = tuple(traces)
        self.whole: list[tuple[int, int]] = []
        self.free: list[tuple[int, int]] = []
        self.unnamed = 0
        parts: list[tuple[Int32, Int64, Int64, Int64]] = []
        sources: list[int] = []
        self._count = 0
        for i, trace in enumerate(self.traces):
            for rows, symbol, grid, block, whole in recorded_launches(trace, symbols):
                if whole and (symbol == UNNAMED).any():
                    self.unnamed += 1
                    continue
                parts.append((rows, symbol, grid, block))
                sources += [i]
                end = self._count + len(rows)
                (self.whole if whole else self.free).append((self._count, end))
                self._count = end
        lengths = [len(part[0]) for part in parts]
        self.source = np.repeat(np.array(sources, np.int64), lengths)
        self.row, self.symbol, self.grid, self.block = (
            np.concatenate([np.zeros(0, np.int64), *(part[i] for part in parts)]) for i in range(4)
        )
        self._what: Int64 = np.full(self._count, -1, np.int64)
        self._where: Int64 = np.full(self._count, -1, np.int64)
        self._whats: dict[object, int] = {}
        self._wheres: dict[object, int] = {(): NOWHERE}

    def __len__(self) -> int:
        return self._count

    def what(self, places: Int64) -> Int64:
        """A number for the operators around each launch, with the shapes and types of the innermost."""
        self._describe(places)
        return self._what[places]

    def where(self, places: Int64) -> Int64:
        """A number for the module and the line of the program around each launch; `NOWHERE` where none is recorded."""
        self._describe(places)
        return self._where[places]

    def _describe(self, places: Int64) -> None:
        for source, trace in enumerate(self.traces):
            fresh = places[(self.source[places] == source) & (self._what[places] < 0)]
            if not len(fresh):
                continue
            fresh = np.unique(fresh)
            rows = self.row[fresh]
            what, where = trace.derived(_operators_around)[rows], _where(trace, rows)
            self._what[fresh] = _by_value(trace, what, _what_of, self._whats)
            self._where[fresh] = _by_value(trace, where, _where_of, self._wheres)


def _by_value(
    trace: Trace, rows: npt.NDArray[np.integer[Any]], value: Callable[[Trace, int], object], numbers: dict[object, int]
) -> Int64:
    distinct, which = np.unique(rows, return_inverse=True)
    found = [numbers.setdefault(value(trace, row), len(numbers)) for row in distinct.tolist()]
    result: Int64 = np.array(found, np.int64)[which.reshape(-1)]
    return result


def _operators_around(trace: Trace) -> Int32:
    return trace.calls.nearest(trace.events.kind == Kind.OPERATOR)


def _what_of(trace: Trace, row: int) -> object:
    if row < 0:
        return ()
    events = trace.events
    around = [trace.name(one) for one in trace.calls.ancestors(row) if events.kind[one] == Kind.OPERATOR]
    return (trace.name(row), *around), events.text("Input Dims", row), events.text("Input type", row)


def _where(trace: Trace, rows: Int64) -> Int64:
    """For each launch the innermost of the frames that show its place: its module, or its line."""
    if not trace.has_stacks:
        return np.full(len(rows), -1, np.int64)
    found: Int64 = trace.derived(_frames_that_tell)[rows].astype(np.int64)
    return found


def _frames_that_tell(trace: Trace) -> Int32:
    wanted = trace.derived(_modules).copy()
    own = trace.derived(own_frames)
    wanted[own[own >= 0]] = True
    return trace.frames.nearest(wanted)


def _modules(trace: Trace) -> Flags:
    found = np.zeros(len(trace.events), np.bool_)
    found[trace.events.of(MODULE)] = True
    return found


def _where_of(trace: Trace, row: int) -> object:
    if row < 0:
        return ()
    own, module = int(trace.derived(own_frames)[row]), trace.derived(_modules)
    names = tuple(trace.name(one) for one in (row, *trace.frames.ancestors(row)) if module[one])
    return trace.name(own) if own >= 0 else "", names


def recorded_launches(trace: Trace, symbols: Symbols) -> list[tuple[Int32, Int64, Int64, Int64, bool]]:
    """The launches of one recording: rows, symbols, grids and blocks, stretch by stretch, and whether it is a capture.

    A launch in a capture runs nothing: its own arguments say what it launches, which HIP records. Of another
    one the work shows it.
    """
    return [*_captured(trace, symbols), *_eager(trace, symbols)]


def _captured(trace: Trace, symbols: Symbols) -> list[tuple[Int32, Int64, Int64, Int64, bool]]:
    events, found = trace.events, []
    calls = events.of(LAUNCH | COPY_CALL | FILL_CALL)
    putting = np.zeros(len(events) + 1, np.bool_)
    putting[calls] = True
    putting[-1] = False
    calls = calls[~putting[trace.calls.parent[calls]] & (trace.links.work_count[calls] == 0)]
    calls = calls[~events.are(GRAPH_LAUNCH, calls)]
    symbol = symbols.names(trace, events.text_ids("kernel", calls))
    symbol[events.are(COPY_CALL, calls)], symbol[events.are(FILL_CALL, calls)] = COPY, FILL
    grid = symbols.texts(trace, events.text_ids("grid", calls))
    block = symbols.texts(trace, events.text_ids("block", calls))
    lane, ts = events.lane[calls], events.ts[calls]
    graphs = trace.derived(captured_graphs)
    for thread, times in sorted(trace.derived(capturing).items()):
        mine = np.flatnonzero(lane == thread)
        starts, ends = graphs.get(thread, (times.starts, times.ends))
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            here = mine[slice(*np.searchsorted(ts[mine], (start, end)).tolist())]
            whole = thread in graphs
            if len(here) and (whole or (symbol[here] != UNNAMED).all()):
                found.append((calls[here], symbol[here], grid[here], block[here], whole))
    return found


def _eager(trace: Trace, symbols: Symbols) -> list[tuple[Int32, Int64, Int64, Int64, bool]]:
    events, links = trace.events, trace.links
    graph = np.zeros(len(events) + 1, np.bool_)
    graph[links.graph_launches] = True
    chosen = (links.launch >= 0) & ~graph[links.launch]
    work, launch = links.work[chosen], links.launch[chosen]
    order = np.lexsort((events.ts[work], events.ts[launch], events.lane[launch]))
    work, launch = work[order], launch[order]
    lane = events.lane[launch]
    symbol = _symbols_of(trace, work, symbols)
    grid = symbols.texts(trace, events.text_ids("grid", work))
    block = symbols.texts(trace, events.text_ids("block", work))
    edges = [0, *(np.flatnonzero(lane[1:] != lane[:-1]) + 1).tolist(), len(lane)]
    return [(launch[a:b], symbol[a:b], grid[a:b], block[a:b], False) for a, b in pairwise(edges) if b > a]
