"""Quantities of a recorded trace: steps, the wait before the first operator, kernels, calls of a step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from torchwhy.trace.file.columns import Int32
from torchwhy.trace.file.scanning import scan
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.model.trace import Trace

__all__ = ["Call", "Kernel", "Reading", "Step", "read"]


@dataclass(frozen=True)
class Step:
    """One recorded step: the annotated call on the host, and the device work it launched.

    Attributes:
        number: as the profiler counts steps.
        host_us: the annotated call.
        dead_us: from its start to the first operator in it: preparation that happens once shows up here.
        device_us, launches: the device work, added up, and its pieces.
        delay_us: from the first launch to the start of its kernel.
    """

    number: int
    host_us: float
    dead_us: float | None
    device_us: float
    launches: int
    delay_us: float | None


@dataclass(frozen=True)
class Kernel:
    """All runs of one device kernel or copy."""

    name: str
    n: int
    min_us: float
    median_us: float
    mean_us: float
    max_us: float


@dataclass(frozen=True)
class Call:
    """A call or annotated region inside a step, `n` times in a row, `depth` levels below the workload's annotation."""

    name: str
    depth: int
    n: int


@dataclass(frozen=True)
class Reading:
    """Steps in order, kernels by total time, and the calls of the last step, in order and nested."""

    steps: tuple[Step, ...]
    kernels: tuple[Kernel, ...]
    calls: tuple[Call, ...]

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
    found = [
        (step.number or 0, row)
        for step in trace.steps_found
        for row in trace.calls.inside(step.row).tolist()
        if trace.events.kind[row] == Kind.ANNOTATION and trace.name(row) == label
    ]
    steps = tuple(_step(trace, number, row) for number, row in found)
    return Reading(steps, _kernels(trace), _nested(trace, found[-1][1]) if found else ())


def _step(trace: Trace, number: int, row: int) -> Step:
    events = trace.events
    operators, runtime = _within(trace, row, Kind.OPERATOR), _within(trace, row, Kind.RUNTIME)
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


def _nested(trace: Trace, row: int) -> tuple[Call, ...]:
    """Return the calls below an event; equal neighbours count as one, n times."""
    calls: list[Call] = []
    top = int(trace.calls.depth[row]) + 1
    for inner in _within(trace, row, Kind.OPERATOR, Kind.RUNTIME, Kind.ANNOTATION).tolist():
        call = Call(trace.name(inner), int(trace.calls.depth[inner]) - top, 1)
        if calls and replace(calls[-1], n=1) == call:
            calls[-1] = replace(call, n=calls[-1].n + 1)
        else:
            calls.append(call)
    return tuple(calls)


def _within(trace: Trace, row: int, *kinds: Kind) -> Int32:
    """The events of these kinds inside a call, in order."""
    rows = trace.calls.inside(row)
    return rows[np.isin(trace.events.kind[rows], kinds)]


def _us(ns: npt.ArrayLike) -> float:
    return float(ns) / 1000  # type: ignore[arg-type]
