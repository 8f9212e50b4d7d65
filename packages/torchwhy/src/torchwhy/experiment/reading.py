"""What a recorded study shows: the steps, the wait before the first operator, the kernels.

Everything is read from the trace file, as a person would read it, so an old file reads again.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from torchwhy.trace.derived.idle import closing_wait
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.file.scanning import scan
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.model.trace import Trace

__all__ = ["Kernel", "Reading", "Step", "read"]

_OPERATORS = (Kind.OPERATOR,)
_CALLS = (Kind.OPERATOR, Kind.RUNTIME)


@dataclass(frozen=True)
class Step:
    """One recorded step: the annotated call on the host, and the device work it launched."""

    number: int
    host_us: float
    dead_us: float | None
    """From entering the annotation to the first operator in it: one-off preparation shows up here."""
    device_us: float
    launches: int
    delay_us: float | None
    """From the first launch to the start of its kernel: long when the device has other things to do, or to set up."""


@dataclass(frozen=True)
class Kernel:
    """All runs of one device kernel or copy: their number and how far their durations differ."""

    name: str
    n: int
    min_us: float
    median_us: float
    mean_us: float
    max_us: float


@dataclass(frozen=True)
class Call:
    """An operator or runtime call inside a step, `n` times in a row, `depth` levels below the annotation."""

    name: str
    depth: int
    n: int


@dataclass(frozen=True)
class Reading:
    """Steps in order, kernels by total time, and what the last step calls, in order and nested."""

    steps: tuple[Step, ...]
    kernels: tuple[Kernel, ...]
    calls: tuple[Call, ...]
    profiler_us: tuple[tuple[str, float], ...]
    """What the profiler itself did, by name: its buffers, and its wait for the device at the end."""

    @property
    def host_us(self) -> float:
        """Median time of the annotated call on the host."""
        return float(np.median([step.host_us for step in self.steps]))

    @property
    def device_us(self) -> float:
        """Median device time of the kernels one step launches."""
        return float(np.median([step.device_us for step in self.steps]))


def read(path: Path, label: str) -> Reading:
    """Read a trace whose steps contain the annotation `label` once each."""
    trace = Trace(str(path), scan(path))
    calls = [
        (step.number or 0, row)
        for step in trace.steps_found
        for row in trace.calls.inside(step.row).tolist()
        if trace.events.kind[row] == Kind.ANNOTATION and trace.name(row) == label
    ]
    steps = tuple(_step(trace, number, row) for number, row in calls)
    last = _within(trace, calls[-1][1], _CALLS) if calls else np.empty(0, np.int32)
    return Reading(steps, _kernels(trace), _nested(trace, last), _profilers_own(trace))


def _step(trace: Trace, number: int, row: int) -> Step:
    events = trace.events
    operators, runtime = _within(trace, row, _OPERATORS), _within(trace, row, (Kind.RUNTIME,))
    work = trace.links.put_by(runtime)
    dead_us = _us(events.ts[operators[0]] - events.ts[row]) if len(operators) else None
    delay_us = _us(events.ts[work[0]] - events.ts[trace.links.of(work[:1])[0]]) if len(work) else None
    return Step(number, _us(events.dur[row]), dead_us, _us(events.dur[work].sum()), len(work), delay_us)


def _kernels(trace: Trace) -> tuple[Kernel, ...]:
    events, work = trace.events, trace.links.work
    kernels = []
    for name in np.unique(events.name[work]):
        us = events.dur[work[events.name[work] == name]] / 1000
        kernels.append(Kernel(events.texts[name], len(us), *map(float, (us.min(), np.median(us), us.mean(), us.max()))))
    return tuple(sorted(kernels, key=lambda kernel: -kernel.n * kernel.mean_us))


def _nested(trace: Trace, rows: Int32) -> tuple[Call, ...]:
    """Return calls in order, with their depth below the annotation; equal neighbours count as one call, n times."""
    calls: list[Call] = []
    depth = trace.calls.depth
    top = int(depth[rows].min()) if len(rows) else 0
    for row in rows.tolist():
        call = Call(trace.name(row), int(depth[row]) - top, 1)
        if calls and (calls[-1].name, calls[-1].depth) == (call.name, call.depth):
            calls[-1] = replace(calls[-1], n=calls[-1].n + 1)
        else:
            calls.append(call)
    return tuple(calls)


def _profilers_own(trace: Trace) -> tuple[tuple[str, float], ...]:
    rows = trace.events.rows(Kind.OVERHEAD).tolist()
    if trace.derived(closing_wait) >= 0:
        rows.append(trace.derived(closing_wait))
    sums: Counter[str] = Counter()
    for row in rows:
        sums[trace.name(row)] += trace.events.dur[row]
    return tuple((name, _us(ns)) for name, ns in sums.items())


def _within(trace: Trace, row: int, kinds: tuple[Kind, ...]) -> Int32:
    """The calls of these kinds inside one, in order."""
    rows = trace.calls.inside(row)
    return rows[np.isin(trace.events.kind[rows], kinds)]


def _us(ns: npt.ArrayLike) -> float:
    return float(ns) / 1000  # type: ignore[arg-type]
