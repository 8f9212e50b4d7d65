"""What a recorded study shows: the steps, the wait before the first operator, the kernels.

Everything is read from the trace file, as a person would read it, so an old file reads again.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["Kernel", "Reading", "Step", "read"]

_DEVICE = {"kernel", "gpu_memcpy", "gpu_memset"}
_CLOSING = {"cudaDeviceSynchronize", "hipDeviceSynchronize"}
_RUNTIME = {"cuda_runtime", "cuda_driver", "xpu_runtime", "xpu_driver"}


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


def read(trace: Path, label: str) -> Reading:
    """Read a trace whose steps contain the annotation `label` once each."""
    events = [e for e in json.loads(trace.read_text("utf-8"))["traceEvents"] if e.get("ph") == "X"]
    by_category = defaultdict(list)
    for event in events:
        by_category[event.get("cat")].append(event)
    annotations = by_category["user_annotation"]
    marks = sorted((e for e in annotations if e["name"].startswith("ProfilerStep#")), key=_start)
    calls = sorted((e for e in annotations if e["name"] == label), key=_start)
    operators, launches = by_category["cpu_op"], [e for c in _RUNTIME for e in by_category[c]]
    work = [e for c in _DEVICE for e in by_category[c]]
    steps = tuple(
        _step(int(mark["name"].split("#")[1]), call, operators, launches, work)
        for mark in marks
        for call in calls
        if _inside(call, mark)
    )
    closing = (e for e in launches if e["name"] in _CLOSING and not any(_inside(e, call) for call in calls))
    own = _sums((*by_category["overhead"], *closing))
    last = [e for e in (*operators, *launches) if calls and _inside(e, calls[-1])]
    return Reading(steps, _kernels(work), _nested(last), own)


def _step(
    number: int,
    call: dict[str, Any],
    operators: list[dict[str, Any]],
    runtime: list[dict[str, Any]],
    work: list[dict[str, Any]],
) -> Step:
    first = min((e["ts"] for e in operators if _inside(e, call)), default=None)
    launched = {_correlation(e): float(e["ts"]) for e in runtime if _inside(e, call) and _correlation(e) is not None}
    own = sorted((e for e in work if _correlation(e) in launched), key=_start)
    delay_us = round(own[0]["ts"] - launched[_correlation(own[0])], 3) if own else None
    dead_us = None if first is None else round(first - call["ts"], 3)
    return Step(number, call["dur"], dead_us, float(sum(e["dur"] for e in own)), len(own), delay_us)


def _kernels(work: list[dict[str, Any]]) -> tuple[Kernel, ...]:
    durations: dict[str, list[float]] = defaultdict(list)
    for event in work:
        durations[event["name"]].append(event["dur"])
    kernels = [
        Kernel(name, len(us), min(us), float(np.median(us)), sum(us) / len(us), max(us))
        for name, us in durations.items()
    ]
    return tuple(sorted(kernels, key=lambda kernel: -kernel.n * kernel.mean_us))


def _nested(events: Iterable[dict[str, Any]]) -> tuple[Call, ...]:
    """Return the events of one thread in order, with their depth; equal neighbours count as one call, n times."""
    calls: list[Call] = []
    open_until: list[float] = []
    for event in sorted(events, key=lambda e: (e["ts"], -e["dur"])):
        while open_until and open_until[-1] <= event["ts"]:
            open_until.pop()
        call = Call(event["name"], len(open_until), 1)
        if calls and (calls[-1].name, calls[-1].depth) == (call.name, call.depth):
            calls[-1] = replace(calls[-1], n=calls[-1].n + 1)
        else:
            calls.append(call)
        open_until.append(event["ts"] + event["dur"])
    return tuple(calls)


def _sums(events: Iterable[dict[str, Any]]) -> tuple[tuple[str, float], ...]:
    sums: dict[str, float] = defaultdict(float)
    for event in events:
        sums[event["name"]] += event["dur"]
    return tuple(sums.items())


def _correlation(event: dict[str, Any]) -> Any:
    """Return the number that ties a launch to its kernel, or None."""
    return event.get("args", {}).get("correlation")


def _start(event: dict[str, Any]) -> float:
    return float(event["ts"])


def _inside(event: dict[str, Any], outer: dict[str, Any]) -> bool:
    """Whether an event on the same thread lies within another's time."""
    if event.get("tid") != outer.get("tid"):
        return False
    return bool(outer["ts"] <= event["ts"] and event["ts"] + event["dur"] <= outer["ts"] + outer["dur"])
