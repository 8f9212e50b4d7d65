"""What torch.compile did in a trace: regions that were entered, graphs they called, and the time compilation took.

The names are those PyTorch has given since 2.1: `TorchDynamo Cache Lookup`, then `Torch-Compiled Region: K/M` (frame
K, its M-th recompilation; without the numbers before 2.5), in it `## Call CompiledFxGraph <hash> ##`. Compilation
announces its stages as `... (dynamo_timed)`, recent versions also as `dynamo`, `entire_frame_compile` and others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from torchfx.profiler.trace.file.columns import Int32
from torchfx.profiler.trace.model.events import Events
from torchfx.profiler.trace.model.intervals import Intervals
from torchfx.profiler.trace.model.kinds import Kind
from torchfx.profiler.trace.model.trace import Trace
from torchfx.profiler.trace.model.tree import BLEED

__all__ = ["GRAPH", "LOOKUP", "REGION", "TUNING", "Compilation", "Compiled", "compiled_of"]

REGION: Final = r"Torch-Compiled Region"
LOOKUP: Final = r"TorchDynamo Cache Lookup"
GRAPH: Final = r"## Call CompiledFxGraph "
STAGE: Final = r".*\(dynamo_timed\)$"
AROUND: Final = (
    r"(dynamo|entire_frame_compile|entire_backward_compile|backend_compile|inductor_compile|compile_attempt_\d+"
    r"|create_aot_dispatcher_function|bytecode_tracing|build_guards|code_gen|compile_file|async_compile\.wait"
    r"|PyCodeCache\.load_by_key_path|fx_codegen_and_compile|GraphLowering\.\w+|Scheduler\.\w+)$"
)
"""Stages without the suffix: they count only in a trace that has the suffix too, since a program may use such names."""

BACKWARD: Final = r"(entire_backward_compile|backward\._backward_impl|compile_fx\.<locals>\.bw_compiler)"
TUNING: Final = (
    r"(CachingAutotuner\.(benchmark_all_configs|coordinate_descent_tuning|benchmark)|benchmark_all_configs"
    r"|AlgorithmSelectorCache\.|autotune_select_algorithm|benchmark_fused_nodes|.*_template_autotuning|.*_autotuning"
    r"|InductorBenchmarker|benchmark_gpu|TritonBenchmarker)"
)
"""Stages that run variants of a kernel to find the fastest."""

_ID: Final = re.compile(r"(?:!\d+/)?(\d+)/(\d+)")


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
        host = (Kind.OPERATOR, Kind.ANNOTATION)
        self.regions: Int32 = events.find(REGION, *host)
        self.lookups: Int32 = events.find(LOOKUP, *host)
        self.graphs: Int32 = events.find(GRAPH, *host)
        stages = events.find(STAGE, *host)
        self.stages: Int32 = events.find(f"{STAGE}|{AROUND}|{BACKWARD}", *host) if len(stages) else stages
        ids = [_id_in(events.named(row)) for row in self.regions.tolist()]
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
        return self._union(self._events.find(TUNING, Kind.OPERATOR, Kind.ANNOTATION))

    @cached_property
    def running(self) -> Intervals:
        """When the host was in a compiled region."""
        return self._union(self.regions)

    @cached_property
    def compilations(self) -> tuple[Compilation, ...]:
        """The outermost stages by time, with what was compiled."""
        events = self._events
        rows = self.stages[_around(events, self.stages) < 0]
        backward = events.names_matching(BACKWARD)[events.name[rows]].tolist()
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
        notes = events.find(r".*compile_id=", Kind.OPERATOR, Kind.ANNOTATION)
        i = np.searchsorted(events.ts[notes], events.ts[rows])
        found: list[tuple[int, int] | None] = []
        for row, first in zip(rows.tolist(), i.tolist(), strict=True):
            inside = (n for n in notes[first : first + 8].tolist() if events.lane[n] == events.lane[row])
            note = next(inside, -1)
            told = note >= 0 and events.end[note] <= events.end[row]
            found.append(_id_in(events.named(note).partition("compile_id=")[2]) if told else None)
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


def _id_in(text: str) -> tuple[int, int]:
    found = _ID.search(text)
    return (int(found[1]), int(found[2])) if found else (-1, -1)


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
