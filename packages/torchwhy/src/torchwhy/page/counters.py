"""Curves along the timeline: the counters a trace holds, and memory, queues and use of devices as its events show."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from torchwhy.errors import TorchWhyError
from torchwhy.trace.derived.launches import launch_queues
from torchwhy.trace.derived.memory import memory_of
from torchwhy.trace.file.columns import Int64
from torchwhy.trace.file.reread import read_arguments
from torchwhy.trace.meaning.counters import counter_meaning, device_of_counters
from torchwhy.trace.meaning.kinds import GPU_WORK, Kind
from torchwhy.trace.model.device import devices_of
from torchwhy.trace.model.intervals import Intervals
from torchwhy.wording import duration, safe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchwhy.trace.model.trace import Trace

__all__ = ["Counter", "counters_of", "drawn_points"]

_POINTS: Final = 4000
"""Points of one curve that the page keeps: more than a screen has pixels."""

_PARTS: Final = 500
"""Stretches that the share of time of busy devices is given for, at most."""

_MOST_READ: Final = 100_000
"""Counter events that are read again for their values: each takes about 30 us."""

_MOST_CURVES: Final = 100
"""Curves of counter events."""

_COUNTER: Final = ord("C")
_UNIT: Final = re.compile(r"^(.*\S)\s*[(\[]([^()\[\]]{1,12})[)\]]$")
_BYTES: Final = {
    "b": 1,
    "byte": 1,
    "bytes": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
}
_DIGITS: Final = 6
"""Significant digits that fractions keep."""


@dataclass(frozen=True)
class Counter:
    """A quantity that keeps its value until the next point.

    Attributes:
        label: what it is, such as "GPU 0 memory in use".
        unit: "B", "%", what the file names, or "".
        times: nanoseconds from the trace's beginning, ascending.
        values: from each time on, in units divided by `divisor`.
        divisor: what the integers are divided by.
        means: the mean value from each time to the next, where points were left out; else None: the values themselves.
    """

    label: str
    unit: str
    times: Int64
    values: Int64
    divisor: int = 1
    means: Int64 | None = None


def counters_of(trace: Trace) -> tuple[Counter, ...]:
    """Return the quantities over time in a trace: its own counters first, then what follows from its events."""
    found = [*_recorded(trace), *_memory(trace), *_busy(trace), *_waiting(trace), *_operators(trace)]
    return tuple(map(_thinned, found))


def _memory(trace: Trace) -> Iterator[Counter]:
    """What tensors occupy, and what the allocator took from the device for them."""
    for memory in trace.derived(memory_of):
        times = memory.times - trace.beginning
        yield Counter(f"{memory.name} memory in use", "B", times, memory.allocated)
        if memory.reserved.any():
            yield Counter(f"{memory.name} memory reserved", "B", times, memory.reserved)


def _busy(trace: Trace) -> Iterator[Counter]:
    """Which share of the time each device has work, over stretches of a round length."""
    events = trace.events
    work = events.rows(*GPU_WORK)
    if not len(work):
        return
    start, end = int(events.ts[work].min()), int(events.end[work].max())
    length = _round_length((end - start) / _PARTS)
    edges = start + length * np.arange(-(-(end - start) // length) + 1)
    devices = devices_of(events, work)
    for device in np.unique(devices).tolist():
        here = work[devices == device]
        times = Intervals.union(events.ts[here], events.end[here])
        shares = times.overlap(edges[:-1], edges[1:]) * 1000 // length
        label = f"GPU {device} busy, of each {duration(length / 1000)}"
        yield Counter(label, "%", *_from_the_beginning(edges - trace.beginning, np.append(shares, 0)), 10)


def _round_length(least: float) -> int:
    """The next 1, 2 or 5 times a power of ten, nanoseconds."""
    power = 10 ** max(0, math.floor(math.log10(max(least, 1.0))))
    return int(next(step * power for step in (1, 2, 5, 10) if step * power >= least))


def _waiting(trace: Trace) -> Iterator[Counter]:
    """How many launches wait for each stream, and for all streams of a device together."""
    devices: dict[int, list[tuple[Int64, Int64]]] = {}
    for queue in trace.derived(launch_queues):
        called = trace.events.ts[queue.launches] - trace.beginning
        begun = np.maximum(queue.starts - trace.beginning, called)
        devices.setdefault(queue.device, []).append((called, begun))
        label = f"GPU {queue.device} stream {queue.stream} launches waiting"
        yield Counter(label, "", *_open_at(called, begun))
    for device, queues in devices.items():
        if len(queues) > 1:
            called, begun = (np.concatenate(times) for times in zip(*queues, strict=True))
            yield Counter(f"GPU {device} launches waiting, all streams", "", *_open_at(called, begun))


def _operators(trace: Trace) -> Iterator[Counter]:
    """How many threads are in an operator, where that is ever more than one."""
    events = trace.events
    rows = events.rows(Kind.OPERATOR)
    lanes = np.unique(events.lane[rows])
    if len(lanes) < 2:
        return
    inside = [rows[events.lane[rows] == lane] for lane in lanes]
    times = [Intervals.union(events.ts[here], events.end[here]) for here in inside]
    starts = np.concatenate([one.starts for one in times]) - trace.beginning
    ends = np.concatenate([one.ends for one in times]) - trace.beginning
    curve = Counter("threads in an operator", "", *_open_at(starts, ends))
    if curve.values.max(initial=0) > 1:
        yield curve


def _open_at(starts: Int64, ends: Int64) -> tuple[Int64, Int64]:
    """When the number of things that began and haven't ended changes, and to what: one point for each moment."""
    times = np.concatenate((starts, ends))
    change = np.repeat(np.array([1, -1], np.int64), [len(starts), len(ends)])
    order = np.argsort(times, kind="stable")
    times, count = times[order], np.cumsum(change[order])
    last = np.flatnonzero(np.append(times[1:] != times[:-1], True))
    return _from_the_beginning(times[last], count[last])


def _from_the_beginning(times: Int64, values: Int64) -> tuple[Int64, Int64]:
    """A curve that is 0 until its first point: what has not begun is not unknown."""
    if not len(times) or times[0] <= 0:
        return times, values
    return np.concatenate(([0], times)), np.concatenate(([0], values))


def _recorded(trace: Trace) -> Iterator[Counter]:
    """The counter events of the file, a curve for each name, process and series."""
    events = trace.events
    rows = np.flatnonzero(events.phase[: events.recorded] == _COUNTER)
    rows = rows[events.ts[rows] >= trace.beginning]
    if not len(rows):
        return
    rows = rows[:: -(-len(rows) // _MOST_READ)]
    try:
        arguments_of_rows = read_arguments(trace.origin.unchanged(), events.offset[rows])
    except (TorchWhyError, OSError):  # an open file is not read twice, and that of a path may be gone
        return
    curves: dict[tuple[str, str, str], tuple[list[int], list[float]]] = {}
    for row, arguments in zip(rows.tolist(), arguments_of_rows, strict=True):
        lane = events.lanes[int(events.lane[row])]
        device = device_of_counters(lane.pid)
        process = lane.process or (f"GPU {device}" if device is not None else "")
        for series, value in arguments.items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                continue
            key = (events.named(row), process, series)
            if key not in curves and len(curves) >= _MOST_CURVES:
                continue
            times, values = curves.setdefault(key, ([], []))
            times.append(int(events.ts[row]) - trace.beginning)
            values.append(float(value))
    several = len({process for _, process, _ in curves}) > 1
    series_of: dict[tuple[str, str], int] = {}
    for name, process, _ in curves:
        series_of[name, process] = series_of.get((name, process), 0) + 1
    for (name, process, series), (when, what) in curves.items():
        words = [process] if several and process else []
        words.append(f"{name} {series}" if series_of[name, process] > 1 else name or series)
        label, unit, factor = _named_unit(safe(", ".join(words))[:200])
        order = np.argsort(np.array(when, np.int64), kind="stable")
        integers, divisor = _integers(np.array(what)[order] * factor)
        yield Counter(label, unit, np.array(when, np.int64)[order], integers, divisor)


def _named_unit(label: str) -> tuple[str, str, int]:
    """A label without the unit in brackets at its end, the unit, and what a value is multiplied by; bytes are bytes."""
    named = _UNIT.match(label)
    if not named:
        unit = counter_meaning(label.rpartition(", ")[2]).unit
        return label, unit, 1
    text, unit = named[1], named[2].strip()
    factor = _BYTES.get(unit.lower(), 0)
    return (text, "B", factor) if factor else (text, unit, 1)


def _integers(values: npt.NDArray[np.float64]) -> tuple[Int64, int]:
    """Numbers as integers and what those are divided by, with six significant digits of the largest at least."""
    largest = float(np.abs(values).max(initial=0))
    if largest >= 2.0**53:  # what the page's numbers hold exactly
        return np.clip(values, -(2.0**53), 2.0**53).astype(np.int64), 1
    if (values == np.round(values)).all():
        return values.astype(np.int64), 1
    digits = max(0, min(15, _DIGITS - math.ceil(math.log10(largest))))
    return np.round(values * 10.0**digits).astype(np.int64), 10**digits


def _thinned(curve: Counter) -> Counter:
    """The points that are drawn; where any are left out, with the means of all."""
    kept = drawn_points(curve.times, curve.values, _POINTS)
    if len(kept) == len(curve.times):
        return curve
    area = np.concatenate(([0.0], np.cumsum(np.diff(curve.times) * curve.values[:-1].astype(np.float64))))
    lengths = np.diff(curve.times[kept])
    means = np.append(np.diff(area[kept]) / np.maximum(lengths, 1), curve.values[kept[-1]])
    means = np.where(np.append(lengths, 1) > 0, means, curve.values[kept])
    return replace(curve, times=curve.times[kept], values=curve.values[kept], means=np.round(means).astype(np.int64))


def drawn_points(times: Int64, values: Int64, most: int) -> Int64:
    """Return the places of the lowest and the highest value of each stretch of time; of `most` points all.

    Args:
        times: ascending.
        values: at each.
        most: places to return, about.
    """
    if len(times) <= most:
        return np.arange(len(times))
    span = int(times[-1] - times[0]) + 1
    stretch = (times - times[0]) * (most // 2) // span
    order = np.lexsort((values, stretch))
    first = np.flatnonzero(np.concatenate(([True], np.diff(stretch[order]) > 0)))
    last = np.append(first[1:], len(order)) - 1
    return np.unique(np.concatenate((order[first], order[last])))
