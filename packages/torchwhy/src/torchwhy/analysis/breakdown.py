"""Where the window's time went, in parts that add up to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import numpy as np

from torchwhy.analysis.names import HOST_STALLS, Group, PartName
from torchwhy.trace.derived.cpu_communication import idle_exchanging
from torchwhy.trace.derived.host_activity import batch_waits, compiling
from torchwhy.trace.derived.idle import closing_wait, profiler_overhead, work_queued
from torchwhy.trace.derived.launches import graph_captures
from torchwhy.trace.derived.recorded import recorded
from torchwhy.trace.derived.stack_samples import stack_samples
from torchwhy.trace.derived.steady_state import shown_window, steady_window
from torchwhy.trace.meaning.annotations import OPTIMIZER_STEP, ZERO_GRAD
from torchwhy.trace.meaning.compiler import COMPILED_CODE
from torchwhy.trace.meaning.kinds import Kind, Meaning
from torchwhy.trace.meaning.operators import BACKWARD
from torchwhy.trace.meaning.runtime import MEMORY_CALL, WAIT_FOR_DEVICE
from torchwhy.trace.model.intervals import Intervals, Window
from torchwhy.trace.model.steps import Step
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import duration, part_of

__all__ = [
    "IN_PYTHON",
    "LISTED",
    "Breakdown",
    "Part",
    "Spread",
    "Stretch",
    "breakdown",
    "calling",
    "during",
    "longest_of",
    "of_window",
    "parts_of",
    "span_of",
]

LISTED: Final = 1000
"""A report lists at most this number of time ranges, and of events: the longest."""

IN_PYTHON: Final = "runs Python in between"
"""Label of the time between operators where recorded frames, or samples of the stack, show Python; without them it may
be anything."""

_UNKNOWN: Final = "was not recorded"

Parts = list[tuple[PartName, str, Intervals]]
"""Name, label for people, and when; what an earlier part covers, a later one doesn't get."""


class Spread(msgspec.Struct, frozen=True):
    """Median, lowest and highest time within a step, of at least two, microseconds."""

    count: int
    median_us: float
    low_us: float
    high_us: float


class Part(msgspec.Struct, frozen=True):
    """A part of the window.

    Attributes:
        name: for programs.
        group: what it is a part of.
        label: the part for people.
        time_us, share: of the window.
        per_step: its time in each step, summed up; None for fewer than two steps.
        steps_us: its time in each of the steps, in the order of `Breakdown.step_starts_us`.
    """

    name: PartName
    group: Group
    label: str
    time_us: float
    share: float
    per_step: Spread | None
    steps_us: tuple[float, ...] = ()


class Stretch(msgspec.Struct, frozen=True):
    """A stretch of time, microseconds in the file's own time."""

    start_us: float
    duration_us: float


class Breakdown(msgspec.Struct, frozen=True):
    """The window's parts.

    Attributes:
        of: "gpu", or "host" where no device worked.
        window: the name of the stretch of time they add up to: the trace's window, without a cold first step and
            a beginning in which the device's work wasn't recorded.
        window_us: its length.
        steps: how many steps are in it.
        step: the time of a whole step on the host; None for fewer than two steps.
        step_starts_us: when each of the steps begins, in the file's own time.
        longest_gap: of the time a device waits for the host's program, or without one no operator runs.
    """

    of: str
    window: str
    window_us: float
    steps: int
    parts: tuple[Part, ...]
    step: Spread | None
    longest_gap: Stretch | None
    step_starts_us: tuple[float, ...] = ()

    def share(self, *names: PartName) -> float:
        """The share of the window of some parts together; a ValueError where there is no part of a name."""
        wanted = set(map(PartName, names))
        return sum(part.share for part in self.parts if part.name in wanted)


def breakdown(trace: Trace) -> Breakdown:
    """Split the window by what the device did, or on a machine without one by what the program did."""
    window, found = trace.derived(shown_window), trace.derived(parts_of)
    steps = [step for step in trace.steps_found if step.start >= trace.derived(steady_window).start]
    return Breakdown(
        "gpu" if trace.has_gpu else "host",
        window.name,
        window.us,
        len(steps),
        tuple(_part(trace.has_gpu, window, steps, *item) for item in found if item[2].total),
        _spread(np.array([step.duration for step in steps], np.int64)),
        _longest_gap(found, HOST_STALLS if trace.has_gpu else (PartName.PYTHON,)),
        tuple(step.start / 1000 for step in steps),
    )


def parts_of(trace: Trace) -> Parts:
    """When each part of the window took place; `trace.derived(parts_of)` splits it once."""
    window = trace.derived(shown_window)
    rest = Intervals.union([window.start], [window.end])
    found: Parts = []
    for name, label, when in _device_parts(trace) if trace.has_gpu else _host_parts(trace):
        part = rest & when
        rest = rest - part
        found.append((name, label, part))
    found.append(_remainder(trace, rest))
    return found


def longest_of(when: Intervals) -> tuple[Stretch, ...]:
    """Return the longest stretches, `LISTED` of them, in order of time."""
    chosen = np.sort(np.argsort(-when.lengths, kind="stable")[:LISTED])
    starts, lengths = when.starts[chosen] / 1000, when.lengths[chosen] / 1000
    return tuple(map(Stretch, starts.tolist(), lengths.tolist()))


def _device_parts(trace: Trace) -> Parts:
    gpu = trace.gpu
    return [
        (PartName.COMPUTING, "computes", gpu.compute),
        (PartName.COMMUNICATION, "only communicates", gpu.communication),
        (PartName.COPIES, "only copies", gpu.copies),
        (PartName.PROFILER, "serves the profiler", trace.derived(profiler_overhead)),
        (PartName.DATA, "loads the next batch", trace.derived(batch_waits)),
        (PartName.COMPILING, "compiles", trace.derived(compiling)),
        (PartName.CAPTURE, "captures a CUDA graph", trace.derived(graph_captures)),
        (PartName.ENDED, "is done, work queued", _closing(trace)),
        (PartName.QUEUED, "has launched, nothing begins", trace.derived(work_queued)),
        (PartName.ALLOCATION, "allocates memory", during(trace, MEMORY_CALL)),
        (PartName.WAITING, "synchronises", during(trace, WAIT_FOR_DEVICE)),
        (PartName.DISPATCH, _calls(trace), calling(trace)),
        (PartName.UNKNOWN, _UNKNOWN, trace.derived(recorded).backward),
        (PartName.WRAPPER, "runs compiled code", during(trace, COMPILED_CODE)),
    ]


def _host_parts(trace: Trace) -> Parts:
    backward = during(trace, BACKWARD)
    return [
        (PartName.PROFILER, "serves the profiler", trace.derived(profiler_overhead)),
        (PartName.DATA, "loads the next batch", trace.derived(batch_waits)),
        (PartName.COMPILING, "compiles", trace.derived(compiling)),
        (PartName.COMMUNICATION, "exchanges with other ranks", trace.derived(idle_exchanging)),
        (PartName.WAITING, "waits for the device", during(trace, WAIT_FOR_DEVICE)),
        (PartName.OPTIMIZER, "runs the optimizer", during(trace, OPTIMIZER_STEP | ZERO_GRAD)),
        (PartName.BACKWARD, "runs backward operators", backward),
        (PartName.OPERATORS, "runs forward operators" if backward.total else _calls(trace, "runs"), calling(trace)),
        (PartName.UNKNOWN, _UNKNOWN, trace.derived(recorded).backward),
        (PartName.WRAPPER, "runs compiled code", during(trace, COMPILED_CODE)),
    ]


def _remainder(trace: Trace, rest: Intervals) -> tuple[PartName, str, Intervals]:
    if trace.derived(recorded).operators or trace.has_stacks:
        framed = rest & trace.events.times_of(trace.events.rows(Kind.PYTHON))
        shown = 2 * framed.total > rest.total or len(trace.derived(stack_samples).inside(rest)) > 0
        return PartName.PYTHON, IN_PYTHON if shown else "is between operators", rest
    return PartName.UNKNOWN, _UNKNOWN, rest


def _calls(trace: Trace, verb: str = "calls") -> str:
    """What `calling` shows: operators, or calls of the runtime where no operator was recorded."""
    return f"{verb} operators" if trace.derived(recorded).operators else "calls the device's runtime"


def _closing(trace: Trace) -> Intervals:
    """The profiler's wait at its end, after the program's last work."""
    rows = [trace.derived(closing_wait)] if trace.derived(closing_wait) >= 0 else []
    return trace.events.times_of(rows)


def _part(has_gpu: bool, window: Window, steps: Sequence[Step], name: PartName, label: str, when: Intervals) -> Part:
    per_step = when.overlap([step.start for step in steps], [step.end for step in steps])
    spread, times = _spread(per_step), tuple((per_step / 1000).tolist())
    return Part(name, _group(has_gpu, name), label, when.total / 1000, window.share(when), spread, times)


def _group(has_gpu: bool, name: PartName) -> Group:
    if not has_gpu:
        return Group.HOST
    return Group.GPU if name in {PartName.COMPUTING, PartName.COMMUNICATION, PartName.COPIES} else Group.IDLE


def _spread(times: np.ndarray[Any, np.dtype[np.int64]]) -> Spread | None:
    if len(times) < 2:
        return None
    return Spread(len(times), float(np.median(times)) / 1000, int(times.min()) / 1000, int(times.max()) / 1000)


def _longest_gap(parts: Parts, names: tuple[PartName, ...]) -> Stretch | None:
    """The longest single stretch of these parts together: no data, compiling or profiler explains it."""
    idle = Intervals.union([], [])
    for name, _, when in parts:
        idle = idle | when if name in names else idle
    if not len(idle):
        return None
    i = int(np.argmax(idle.lengths))
    return Stretch(int(idle.starts[i]) / 1000, int(idle.lengths[i]) / 1000)


def during(trace: Trace, meaning: Meaning) -> Intervals:
    """When any event that means this ran, on whatever thread."""
    rows = trace.events.of(meaning)
    return trace.events.times_of(rows)


def calling(trace: Trace) -> Intervals:
    """When at least one thread was inside an operator, other than compiled code, or a call of the device's runtime."""
    rows = trace.events.rows(Kind.OPERATOR, Kind.RUNTIME)
    working = rows[~trace.events.are(COMPILED_CODE, rows)]
    return trace.events.times_of(working)


def span_of(parts: Breakdown) -> str:
    """Return "the 3 steps", "the one recorded step" or "the recording"."""
    if not parts.steps:
        return "the recording"
    return f"the {parts.steps} steps" if parts.steps > 1 else "the one recorded step"


def of_window(parts: Breakdown, share: float) -> str:
    """Return a share of the window as "356 ms of 1.07 s", or the whole as "1.07 s"."""
    whole = parts.window_us
    return duration(whole) if share >= 1 else part_of(share * whole, whole)
