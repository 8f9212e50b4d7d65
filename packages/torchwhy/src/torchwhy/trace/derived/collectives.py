"""Communication between ranks in one trace: what was exchanged, how much, for how long, and at what bandwidth.

A kernel of a communication library says itself what it does in recent traces; in older ones the `record_param_comms`
around its launch says it. On the CPU the annotations of Gloo and others ("gloo:all_reduce") are the collectives.

Sizes and bandwidths are those of nccl-tests (its doc/PERFORMANCE.md): the size is that of the whole data, so of the
output of an all-gather and of the input of a reduce-scatter; the bus bandwidth of n ranks multiplies the algorithm
bandwidth (size by time) by 2(n-1)/n for all-reduce, by (n-1)/n where each rank keeps its own part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from torchwhy.trace.file.columns import ABSENT, Int32, Int64
from torchwhy.trace.meaning.communication import (
    COLLECTIVE,
    DEFAULT_KERNEL,
    EXCHANGE,
    RECORD,
    collective_name,
    library_of,
)
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.model.events import Events, parse_list
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace

__all__ = [
    "MOST_RANKS",
    "Collective",
    "bus_factor",
    "collective_times",
    "collectives_of",
    "own_collectives",
    "waiting_at_least",
]

MOST_RANKS: Final = 1_000_000
"""More are a mistake of whoever wrote the file."""

_ENOUGH: Final = 3
"""If there are fewer collectives of a kind, the quickest may have waited, too."""

_BYTES: Final = {
    **dict.fromkeys(("byte", "char", "bool", "unsigned char", "signed char", "uint8", "int8"), 1),
    **dict.fromkeys(("half", "bfloat16", "short", "int16", "float16", "short int"), 2),
    **dict.fromkeys(("float", "int", "int32", "float32", "uint32"), 4),
    **dict.fromkeys(("double", "long", "long int", "int64", "float64", "complexfloat"), 8),
    "complexdouble": 16,
}


@dataclass(frozen=True)
class Collective:
    """One collective on this rank.

    Attributes:
        name: "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "barrier", "send", ...
        row: of the kernel, or of the annotation on the CPU.
        launch: row of the runtime call that launched the kernel, or -1.
        start, duration: nanoseconds; the duration includes waiting for the other ranks.
        bytes: its size as nccl-tests count it; -1 where the trace doesn't show it.
        dtype: as PyTorch calls it, in lower case, or "".
        group: the process group's name, or "".
        members: its ranks as the trace writes them, such as "[0, 1]", or "".
        group_size: how many ranks take part; the world if the trace doesn't show it; 0 if that is unknown, too.
        seq: its number within the group, the same on all ranks; -1 where the trace doesn't show it.
        calls: rows on the host around its launch that ask for the exchange, from the innermost.
        library: "NCCL", "DeepEP", "gloo", ..., or "" where the name doesn't show it.
    """

    name: str
    row: int
    launch: int
    start: int
    duration: int
    bytes: int
    dtype: str
    group: str
    members: str
    group_size: int
    seq: int
    calls: tuple[int, ...] = ()
    library: str = ""

    @property
    def algorithm_bandwidth(self) -> float:
        """Size by time, GB/s; NaN where one isn't known."""
        return self.bytes / self.duration if self.bytes > 0 and self.duration > 0 else math.nan

    @property
    def bus_bandwidth(self) -> float:
        """The rate at which a link carries data, GB/s: comparable to the hardware's rate for every collective."""
        return self.algorithm_bandwidth * bus_factor(self.name, self.group_size)


def collectives_of(trace: Trace) -> tuple[Collective, ...]:
    """Every collective of a trace, by start; `trace.derived(collectives_of)` finds them once."""
    events = trace.events
    rows = trace.gpu.communication_rows
    launches = trace.links.of(rows)
    if not len(rows):
        rows = events.of(COLLECTIVE)
        launches = np.full(len(rows), -1, np.int32)
    calls = _calls(trace, rows, launches)
    return tuple(_collective(trace, *item) for item in zip(rows.tolist(), launches.tolist(), calls, strict=True))


def own_collectives(trace: Trace) -> tuple[Collective, ...]:
    """The collectives of the window, by start, without those that the program launched before it.

    `trace.derived(own_collectives)` finds them once. Where the launch wasn't recorded, a collective counts from the
    first work on its stream that was launched within the window.
    """
    events, window, links = trace.events, trace.window, trace.links
    known = np.flatnonzero(links.launch >= 0)
    own = known[events.ts[links.launch[known]] >= window.start]
    first = np.full(len(events.lanes), window.start, np.int64)
    lanes, place = np.unique(events.lane[links.work[own]], return_index=True)
    first[lanes] = events.ts[links.work[own[place]]]  # `work` is in order of time
    if 2 * len(known) < len(links.work):
        first[:] = window.start

    def belongs(one: Collective) -> bool:
        if one.start >= window.end or one.start + one.duration <= window.start:
            return False
        if one.launch >= 0:
            return bool(events.ts[one.launch] >= window.start)
        return one.start >= int(first[events.lane[one.row]])

    return tuple(one for one in trace.derived(collectives_of) if belongs(one))


def collective_times(trace: Trace, found: Sequence[Collective]) -> Intervals:
    """When at least one of some collectives took place, within the window."""
    return trace.when([one.row for one in found])


def waiting_at_least(found: Sequence[Collective]) -> Int64:
    """How long each collective waited for other ranks at least, nanoseconds, by one rank's trace alone.

    It needs no longer for its data than the quickest of its kind and group that carried as much or more. Three of a
    kind are needed, with known sizes; 0 for the others.
    """
    waiting = np.zeros(len(found), np.int64)
    kinds: dict[tuple[str, str, str], list[int]] = {}
    for i, one in enumerate(found):
        if one.bytes >= 0:
            kinds.setdefault((one.name, one.group, one.members), []).append(i)
    for mine in kinds.values():
        if len(mine) < _ENOUGH:
            continue
        size = np.array([found[i].bytes for i in mine], np.int64)
        spent = np.array([found[i].duration for i in mine], np.int64)
        order = np.lexsort((spent, -size))  # of equal sizes the quickest first
        waiting[np.array(mine)[order]] = spent[order] - np.minimum.accumulate(spent[order])
    return waiting


def bus_factor(name: str, ranks: int) -> float:
    """Return the factor between the bus bandwidth and the algorithm bandwidth.

    >>> bus_factor("all_reduce", 8), bus_factor("all_gather", 8), bus_factor("broadcast", 8)
    (1.75, 0.875, 1.0)
    """
    if ranks < 1:
        return math.nan
    if name == "all_reduce":
        return 2 * (ranks - 1) / ranks
    if name in {"all_gather", "reduce_scatter", "all_to_all", "gather", "scatter"}:
        return (ranks - 1) / ranks
    return 1.0


def _calls(trace: Trace, rows: Int32, launches: Int32) -> list[tuple[int, ...]]:
    """The events on the host around each launch that may show what it is, from the innermost."""
    events = trace.events
    found = []
    for row, launch in zip(rows.tolist(), launches.tolist(), strict=True):
        host = launch if launch >= 0 else row if events.kind[row] != Kind.KERNEL else -1
        around = np.array([host, *trace.ancestors(host)] if host >= 0 else [], np.int32)
        found.append(tuple(around[events.are(EXCHANGE, around)].tolist()))
    return found


def _collective(trace: Trace, row: int, launch: int, calls: tuple[int, ...]) -> Collective:
    events = trace.events
    sources = (row, *calls)
    written = _first_text(events, "Collective name", sources)
    own = events.named(row)
    names = [written, *(events.named(call) for call in calls if not RECORD.names(events.named(call)))]
    names += [] if DEFAULT_KERNEL.names(own) and not calls else [own]
    name = next((found for found in map(collective_name, names) if found), "other")
    dtype = _first_text(events, "dtype", sources).lower()
    size = _first_integer(events, "Group size", sources)
    size = next((n for n in (size, trace.info.world_size or 0) if 0 < n <= MOST_RANKS), 0)
    into, out = (_first_integer(events, key, sources) for key in ("In msg nelems", "Out msg nelems"))
    if into < 0 and out < 0:
        into, dtype = _by_shape(events, calls)
        out = -1
    return Collective(
        name,
        row,
        launch,
        int(events.ts[row]),
        int(events.dur[row]),
        _size(name, into, out, size) * _width(dtype) if _width(dtype) else -1,
        dtype,
        _first_text(events, "Process Group Name", sources),
        _first_text(events, "Process Group Ranks", sources),
        size,
        _first_integer(events, "Seq", sources),
        calls,
        library_of(own),
    )


def _size(name: str, into: int, out: int, ranks: int) -> int:
    """Elements of the whole data; a negative number where it isn't known."""
    if name == "all_gather":
        return out if out > 0 else into * ranks if into > 0 and ranks else -1
    if name in {"gather", "broadcast", "recv"}:
        return max(into, out) or -1
    return into if into > 0 else out if out > 0 else -1


def _by_shape(events: Events, calls: tuple[int, ...]) -> tuple[int, str]:
    """Elements and type of the first tensor that a recorded call was given: what traces before 2.2 show."""
    for call in calls:
        shapes, types = (parse_list(events.text(key, call)) for key in ("Input Dims", "Input type"))
        for shape, kind in zip(shapes, types, strict=False):
            if isinstance(shape, list) and shape and all(isinstance(n, int) for n in shape):
                return math.prod(shape), str(kind).lower()
    return -1, ""


def _width(dtype: str) -> int:
    """Bytes of an element, 0 where the type isn't known."""
    plain = dtype.rpartition("::")[2]
    return 1 if plain.startswith("float8") else _BYTES.get(" ".join(plain.split()), 0)


def _first_text(events: Events, key: str, rows: tuple[int, ...]) -> str:
    texts = (events.texts[i] for i in events.text_ids(key, rows).tolist() if i >= 0) if events.has(key) else ()
    return next(filter(None, texts), "")


def _first_integer(events: Events, key: str, rows: tuple[int, ...]) -> int:
    values: Int64 = events.integers(key, rows)
    return next((value for value in values.tolist() if value != ABSENT), -1)
