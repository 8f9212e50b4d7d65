"""What torch.compile did in a trace: regions that were entered, graphs they called, and the time compilation took."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from torchfx.profiler.trace.file.columns import Int32
from torchfx.profiler.trace.meaning.compiler import (
    COMPILE_ID,
    COMPILING,
    COMPILING_BACKWARD,
    GRAPH,
    LOOKUP,
    REGION,
    STAGE,
    TUNING,
    compile_id,
)
from torchfx.profiler.trace.model.events import Events
from torchfx.profiler.trace.model.intervals import Intervals
from torchfx.profiler.trace.model.trace import Trace
from torchfx.profiler.trace.model.tree import BLEED

__all__ = ["Compilation", "Compiled", "compiled_of"]


@dataclass(frozen=True)
class Compilation:
    """One compilation, of a forward or a backward pass.

    Attributes:
        row: the outermost event of it.
        start, end: nanoseconds.
        frame, version: K and M of its name K/M, -1 where the trace doesn't tell.
        backward: whether it compiled a backward pass, which happens when that runs first.
    """

    row: int
    start: int
    end: int
    frame: int
    version: int
    backward: bool

    @property
    def id(self) -> str:
        """K/M, or ""."""
        return f"{self.frame}/{self.version}" if self.frame >= 0 else ""


class Compiled:
    """What was compiled, and what compiled code ran.

    Attributes:
        regions: rows of `Torch-Compiled Region`, by start.
        frame, version: K and M of each region; -1 where its name has none.
        outer: for each region the position (in `regions`) of the region around it, or -1. A region inside another is
            the rest of a function after a graph break, or what the break calls.
        lookups: rows of `TorchDynamo Cache Lookup`, by start.
        graphs: rows on the host of calls of compiled graphs, by start.
        stages: rows of everything that compiles, by start.
    """

    def __init__(self, trace: Trace) -> None:
        events = trace.events
        self._events = events
        self.regions: Int32 = events.of(REGION)
        self.lookups: Int32 = events.of(LOOKUP)
        self.graphs: Int32 = events.of(GRAPH)
        self.stages: Int32 = events.of(COMPILING) if events.any_of(STAGE) else events.of(STAGE)
        ids = [compile_id(events.named(row)) for row in self.regions.tolist()]
        self.frame = np.array([k for k, _ in ids], np.int32)
        self.version = np.array([m for _, m in ids], np.int32)
        self.outer = _around(events, self.regions)

    def __bool__(self) -> bool:
        """Whether anything in the trace is of torch.compile."""
        return bool(len(self.regions) or len(self.lookups) or len(self.graphs) or len(self.stages))

    @cached_property
    def compiling(self) -> Intervals:
        """When something was being compiled; stages within stages count once."""
        return self._union(self.stages)

    @cached_property
    def tuning(self) -> Intervals:
        """When variants of kernels were tried to find the fastest."""
        return self._union(self._events.of(TUNING))

    @cached_property
    def running(self) -> Intervals:
        """When the host was in a compiled region."""
        return self._union(self.regions)

    @cached_property
    def compilations(self) -> tuple[Compilation, ...]:
        """The outermost stages by time, with what was compiled."""
        events = self._events
        rows = self.stages[_around(events, self.stages) < 0]
        backward = events.are(COMPILING_BACKWARD, rows).tolist()
        announced, entered = self._announced(rows), self._entered_after(rows)
        found = []
        for i, row in enumerate(rows.tolist()):
            frame, version = announced[i] or ((-1, -1) if backward[i] else entered[i])
            start, end = int(events.ts[row]), int(events.end[row])
            found.append(Compilation(row, start, end, frame, version, backward[i]))
        return tuple(found)

    @cached_property
    def without_region(self) -> Int32:
        """Lookups that led neither into a region nor to a compilation: what follows runs as it was written.

        PyTorch does that once a function has been recompiled too often. The last lookup of a thread is left out, since
        the trace may end there.
        """
        events, lookups = self._events, self.lookups
        rows = np.concatenate((lookups, self.regions, self.stages))
        rows = rows[np.lexsort((events.ts[rows], events.lane[rows]))]
        is_lookup = np.isin(rows, lookups)
        nowhere = is_lookup[:-1] & is_lookup[1:] & (events.lane[rows][:-1] == events.lane[rows][1:])
        return np.sort(rows[:-1][nowhere])

    def _union(self, rows: Int32) -> Intervals:
        return Intervals.union(self._events.ts[rows], self._events.end[rows])

    def _announced(self, rows: Int32) -> list[tuple[int, int] | None]:
        """The K/M that an annotation within each compilation tells (`dynamo_data: compile_id=0/1`)."""
        events = self._events
        notes = events.of(COMPILE_ID)
        i = np.searchsorted(events.ts[notes], events.ts[rows])
        found: list[tuple[int, int] | None] = []
        for row, first in zip(rows.tolist(), i.tolist(), strict=True):
            inside = (n for n in notes[first : first + 8].tolist() if events.lane[n] == events.lane[row])
            note = next(inside, -1)
            told = note >= 0 and events.end[note] <= events.end[row]
            found.append(compile_id(events.named(note)) if told else None)
        return found

    def _entered_after(self, rows: Int32) -> list[tuple[int, int]]:
        """The region entered first after each compilation on its thread, before the next one: what it made."""
        events, found = self._events, []
        ends = np.append(events.ts[rows][1:], np.iinfo(np.int64).max)[: len(rows)]
        i = np.searchsorted(events.ts[self.regions], events.end[rows])
        for row, first, before in zip(rows.tolist(), i.tolist(), ends.tolist(), strict=True):
            same = first < len(self.regions) and events.lane[self.regions[first]] == events.lane[row]
            soon = same and events.ts[self.regions[first]] < before
            found.append((int(self.frame[first]), int(self.version[first])) if soon else (-1, -1))
        return found


def compiled_of(trace: Trace) -> Compiled:
    """What torch.compile did; `trace.derived(compiled_of)` computes it once."""
    return Compiled(trace)


def _around(events: Events, rows: Int32) -> Int32:
    """For each of these events by start: the position of the innermost other one around it on its thread, or -1."""
    above = np.full(len(rows), -1, np.int32)
    open_: dict[int, list[int]] = {}
    columns = (events.lane[rows].tolist(), events.ts[rows].tolist(), events.end[rows].tolist())
    for i, (lane, start, end) in enumerate(zip(*columns, strict=True)):
        stack = open_.setdefault(lane, [])
        while stack and columns[2][stack[-1]] <= start:
            stack.pop()
        if stack and columns[2][stack[-1]] + BLEED >= end:
            above[i] = stack[-1]
        stack.append(i)
    return above
