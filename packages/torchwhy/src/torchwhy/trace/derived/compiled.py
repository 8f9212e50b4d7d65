"""The work of torch.compile in a trace: entered regions, graphs that they called, and the time of compilation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from torchwhy.trace.derived.autograd import autograd
from torchwhy.trace.file.columns import Int32, Int64
from torchwhy.trace.meaning.compiler import (
    COMPILE_ID,
    COMPILED_BACKWARD,
    COMPILED_FUNCTION,
    COMPILING,
    COMPILING_BACKWARD,
    ENTERING,
    GRAPH,
    LOOKUP,
    REGION,
    STAGE,
    TUNING,
    compile_id,
    stage_name,
)
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.model.events import Events
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.trace.model.tree import BLEED

__all__ = ["Compilation", "Compiled", "broken_off", "compiled_of", "entry_overhead"]


@dataclass(frozen=True)
class Compilation:
    """One compilation, of a forward or a backward pass.

    Attributes:
        row: the outermost event of it.
        start, end: nanoseconds.
        frame, version: K and M of its name K/M, -1 where the trace doesn't show it.
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
    """The compilations and the runs of compiled code.

    Attributes:
        regions: rows of `Torch-Compiled Region`, by start.
        frame, version: K and M of each region; -1 if its name does not give it.
        outer: for each region the position (in `regions`) of the region around it, or -1. A region inside another is
            the rest of a function after a graph break, or what the break calls.
        lookups: rows of `TorchDynamo Cache Lookup`, by start.
        graphs: rows on the host of calls of compiled graphs, by start.
        stages: rows of everything that compiles, by start.
        functions: rows of `CompiledFunction`, by start; all that PyTorch before 2.1 says of compiled code.
        backward: rows of the nodes of compiled backward passes, by start.
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
        self.functions: Int32 = events.of(COMPILED_FUNCTION)
        backward = events.of(COMPILED_BACKWARD)
        self.backward: Int32 = backward[_around(events, backward) < 0]
        self._trace = trace

    def __bool__(self) -> bool:
        """Whether anything in the trace is of torch.compile."""
        found = (self.regions, self.lookups, self.graphs, self.stages, self.functions)
        return any(len(rows) > 0 for rows in found)

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
        rows = self.stages[self._stages_around < 0]
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

    @cached_property
    def found_in_cache(self) -> int:
        """How many lookups in the window's steps led straight into a region; 0 if any led to a compilation."""
        trace = self._trace
        lookups = self.lookups[trace.in_steps(self.lookups)]
        compiled = [one for one in self.compilations if trace.window.start <= one.start < trace.window.end]
        nowhere = np.isin(lookups, self.without_region)
        return 0 if compiled or nowhere.any() or not len(self.regions) else len(lookups)

    @cached_property
    def stage_around(self) -> dict[int, int]:
        """The innermost stage around each stage that has one, both as rows."""
        above = self._stages_around
        inner = np.flatnonzero(above >= 0)
        return dict(zip(self.stages[inner].tolist(), self.stages[above[inner]].tolist(), strict=True))

    @cached_property
    def stage_self_time(self) -> Int64:
        """One entry per row of the trace: of a stage its time without the stages inside it, nanoseconds; else 0."""
        found = np.zeros(len(self._events), np.int64)
        found[self.stages] = self._events.dur[self.stages]
        for row, above in self.stage_around.items():
            found[above] -= int(self._events.dur[row])
        return np.maximum(found, 0)

    def stage_name(self, row: int) -> str:
        """The name of a stage, the same whether Dynamo or the compiler announces it."""
        return stage_name(self._events.named(row))

    def stage_ids(self, rows: Int32) -> list[str]:
        """K/M of the compilation that each stage is a part of, "" where that isn't known."""
        known = {one.row: one.id for one in self.compilations}
        found = []
        for row in rows.tolist():
            while row in self.stage_around:
                row = self.stage_around[row]
            found.append(known.get(row, ""))
        return found

    def region_ids(self, rows: Int32) -> list[str]:
        """K/M of regions, "" of those without."""
        return [self._ids[row] for row in rows.tolist()]

    def ids_around(self, rows: Int32) -> list[str]:
        """K/M of the region that each graph runs in, or whose backward pass it is; "" without a region.

        A backward pass belongs to the region in which its forward pass ran: both carry autograd's sequence number.
        """
        trace, events = self._trace, self._events
        region, node = np.zeros(len(events), np.bool_), np.zeros(len(events), np.bool_)
        region[self.regions], node[self.backward] = True, True
        in_region, in_node = trace.calls.nearest(region), trace.calls.nearest(node)
        pairs = trace.derived(autograd)
        found = []
        for row in rows.tolist():
            forward = pairs.forward_of(int(in_node[row])) if in_node[row] >= 0 else row
            around = int(in_region[forward]) if forward >= 0 else -1
            found.append(self._ids.get(around, ""))
        return found

    @cached_property
    def _ids(self) -> dict[int, str]:
        numbers = zip(self.regions.tolist(), self.frame.tolist(), self.version.tolist(), strict=True)
        return {row: f"{frame}/{version}" if frame >= 0 else "" for row, frame, version in numbers}

    @cached_property
    def _stages_around(self) -> Int32:
        return _around(self._events, self.stages)

    def _union(self, rows: Int32) -> Intervals:
        return self._events.times_of(rows)

    def _announced(self, rows: Int32) -> list[tuple[int, int] | None]:
        """The K/M in an annotation within each compilation (`dynamo_data: compile_id=0/1`)."""
        events = self._events
        notes = events.of(COMPILE_ID)
        i = np.searchsorted(events.ts[notes], events.ts[rows])
        found: list[tuple[int, int] | None] = []
        for row, first in zip(rows.tolist(), i.tolist(), strict=True):
            inside = (n for n in notes[first : first + 8].tolist() if events.lane[n] == events.lane[row])
            note = next(inside, -1)
            has_note = note >= 0 and events.end[note] <= events.end[row]
            found.append(compile_id(events.named(note)) if has_note else None)
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
    """Return the work of torch.compile; `trace.derived(compiled_of)` computes it once."""
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


def entry_overhead(trace: Trace) -> Intervals:
    """Time on the way into compiled graphs and out of them: lookups and regions without graphs and operators."""
    compiled = trace.derived(compiled_of)
    events = trace.events
    rows = events.rows(Kind.OPERATOR, Kind.RUNTIME)
    working = rows[~events.are(ENTERING, rows)]
    work = events.times_of(working)
    graphs = events.times_of(compiled.graphs)
    lookups = events.times_of(compiled.lookups)
    return (compiled.running | lookups) - work - graphs - compiled.compiling


def broken_off(trace: Trace) -> Intervals:
    """When regions inside regions ran, which graph breaks make; the lookups before them included."""
    compiled, events = trace.derived(compiled_of), trace.events
    nested, lookups = compiled.regions[compiled.outer >= 0], compiled.lookups
    # The lookup before a piece belongs to it: it lies in the region around, like the piece itself.
    within = events.covered(lookups, compiled.running) > 0
    return events.times_of(nested[trace.in_steps(nested)]) | events.times_of(lookups[within])
