"""Curves along the timeline: memory in use, and launches that wait."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from torchwhy.trace.derived.launches import launch_queues
from torchwhy.trace.derived.memory import memory_of
from torchwhy.trace.file.columns import Int64

if TYPE_CHECKING:
    from torchwhy.trace.model.trace import Trace

__all__ = ["Counter", "counters_of", "drawn_points"]

_POINTS: Final = 4000
"""Points of one curve that the page keeps: more than a screen has pixels."""


@dataclass(frozen=True)
class Counter:
    """A quantity that keeps its value until the next point.

    Attributes:
        label: what it is, such as "GPU 0 memory in use".
        unit: "B" or "".
        times: nanoseconds from the trace's beginning, ascending.
        values: from each time on.
    """

    label: str
    unit: str
    times: Int64
    values: Int64


def counters_of(trace: Trace) -> tuple[Counter, ...]:
    """Return what a trace tells of memory and of the queues of its streams."""
    base = trace.beginning
    found = [
        _thinned(Counter(f"{memory.name} memory in use", "B", memory.times - base, memory.allocated))
        for memory in trace.derived(memory_of)
    ]
    for queue in trace.derived(launch_queues):
        called, begun = trace.events.ts[queue.launches], queue.starts
        times = np.concatenate((called, np.maximum(begun, called))) - base
        change = np.concatenate((np.ones(len(called), np.int64), -np.ones(len(begun), np.int64)))
        order = np.lexsort((-change, times))
        label = f"GPU {queue.device} stream {queue.stream} launches waiting"
        found.append(_thinned(Counter(label, "", times[order], np.cumsum(change[order]))))
    return tuple(found)


def _thinned(curve: Counter) -> Counter:
    kept = drawn_points(curve.times, curve.values, _POINTS)
    return Counter(curve.label, curve.unit, curve.times[kept], curve.values[kept])


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
