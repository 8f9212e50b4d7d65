"""Where the window's time went, in parts that add up to it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from torchfx.profiler.report import host
from torchfx.profiler.trace.derived.exchanging import idle_exchanging
from torchfx.profiler.trace.derived.idle import closing_wait, profiler_overhead
from torchfx.profiler.trace.model.intervals import Intervals
from torchfx.profiler.trace.model.kinds import Kind
from torchfx.profiler.trace.model.trace import Trace

__all__ = ["HOST_STALLS", "breakdown"]

HOST_STALLS: Final = ("allocation", "waiting", "dispatch", "wrapper", "python")
"""Parts in which a device waits for the host's program."""

Parts = list[tuple[str, str, Intervals]]
"""Name, label for people, and when; what an earlier part covers, a later one doesn't get."""


def breakdown(trace: Trace) -> dict[str, Any]:
    """Split the window by what the device did, or on a machine without one by what the program did.

    Returns:
        "of": "gpu" or "host"; "window_us"; "parts", each with "name", "group" ("gpu" and what it does, "idle" and what
        the host does meanwhile, or "host"), "label", "time_us", "share" and, of two steps or
        more, "per_step" (median, lowest and highest time within a step, microseconds); "step", the same of a whole
        step; "longest_gap", of the time a device waits for the host's program, or without one no operator runs.
    """
    window = trace.window
    rest = Intervals.union([window.start], [window.end])
    found: Parts = []
    for name, label, when in _device_parts(trace) if trace.has_gpu else _host_parts(trace):
        part = rest & when
        rest = rest - part
        found.append((name, label, part))
    found.append(_remainder(trace, rest))
    return {
        "of": "gpu" if trace.has_gpu else "host",
        "window_us": window.us,
        "parts": [_part(trace, name, label, when) for name, label, when in found if when.total],
        "step": _statistics(np.array([step.duration for step in trace.steps_found], np.int64)),
        "longest_gap": _longest_gap(found, HOST_STALLS if trace.has_gpu else ("python",)),
    }


def _device_parts(trace: Trace) -> Parts:
    gpu = trace.gpu
    return [
        ("computing", "computes", gpu.compute),
        ("communication", "only communicates", gpu.communication),
        ("copies", "only copies", gpu.copies),
        ("profiler", "serves the profiler", trace.derived(profiler_overhead)),
        ("data", "loads the next batch", host.named(trace, host.LOADING, Kind.ANNOTATION)),
        ("compiling", "compiles", _compiling(trace)),
        ("ended", "is done, work queued", _closing(trace)),
        ("allocation", "allocates memory", host.named(trace, host.ALLOCATION, Kind.RUNTIME)),
        ("waiting", "synchronises", host.named(trace, host.WAITING, Kind.RUNTIME)),
        ("dispatch", "calls operators", host.calling(trace)),
        ("wrapper", "runs compiled code", _wrappers(trace)),
    ]


def _host_parts(trace: Trace) -> Parts:
    backward = host.named(trace, host.BACKWARD, Kind.OPERATOR)
    return [
        ("profiler", "serves the profiler", trace.derived(profiler_overhead)),
        ("data", "loads the next batch", host.named(trace, host.LOADING, Kind.ANNOTATION)),
        ("compiling", "compiles", _compiling(trace)),
        ("communication", "exchanges with other ranks", trace.derived(idle_exchanging)),
        ("waiting", "waits for the device", host.named(trace, host.WAITING, Kind.RUNTIME)),
        ("optimizer", "runs the optimizer", host.named(trace, host.OPTIMIZER, Kind.ANNOTATION)),
        ("backward", "runs backward operators", backward),
        ("operators", "runs forward operators" if backward.total else "runs operators", host.calling(trace)),
        ("wrapper", "runs compiled code", _wrappers(trace)),
    ]


def _remainder(trace: Trace, rest: Intervals) -> tuple[str, str, Intervals]:
    if not trace.has_gpu:
        return "python", "runs Python in between", rest
    if not len(trace.events.rows(Kind.OPERATOR, Kind.RUNTIME)):
        return "unknown", "was not recorded", rest
    return "python", "runs Python in between", rest


def _closing(trace: Trace) -> Intervals:
    """The profiler's wait at its end, during which the program does nothing any more."""
    rows = [trace.derived(closing_wait)] if trace.derived(closing_wait) >= 0 else []
    return Intervals.union(trace.events.ts[rows], trace.events.end[rows])


def _compiling(trace: Trace) -> Intervals:
    return host.named(trace, host.COMPILING, Kind.OPERATOR, Kind.ANNOTATION)


def _wrappers(trace: Trace) -> Intervals:
    return host.named(trace, host.WRAPPER, Kind.OPERATOR, Kind.ANNOTATION)


def _part(trace: Trace, name: str, label: str, when: Intervals) -> dict[str, Any]:
    starts = [step.start for step in trace.steps_found]
    per_step = when.overlap(starts, [step.end for step in trace.steps_found]) if starts else np.empty(0, np.int64)
    window = trace.window
    return {
        "name": name,
        "group": _group(trace, name),
        "label": label,
        "time_us": when.total / 1000,
        "share": when.total / (window.end - window.start),
        "per_step": _statistics(per_step),
    }


def _group(trace: Trace, name: str) -> str:
    if not trace.has_gpu:
        return "host"
    return "gpu" if name in {"computing", "communication", "copies"} else "idle"


def _statistics(times: np.ndarray[Any, np.dtype[np.int64]]) -> dict[str, Any] | None:
    """Median and range of at least two steps, microseconds."""
    if len(times) < 2:
        return None
    return {
        "count": len(times),
        "median_us": float(np.median(times)) / 1000,
        "low_us": int(times.min()) / 1000,
        "high_us": int(times.max()) / 1000,
    }


def _longest_gap(parts: Parts, names: tuple[str, ...]) -> dict[str, float] | None:
    """The longest single stretch of these parts together: no data, compiling or profiler explains it."""
    idle = Intervals.union([], [])
    for name, _, when in parts:
        idle = idle | when if name in names else idle
    if not len(idle):
        return None
    i = int(np.argmax(idle.lengths))
    return {"start_us": int(idle.starts[i]) / 1000, "duration_us": int(idle.lengths[i]) / 1000}
