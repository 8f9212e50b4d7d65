"""The memory timeline: how much was allocated on each device after every allocation and release."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

__all__ = ["MemoryTimeline", "timelines"]


@dataclass(frozen=True)
class MemoryTimeline:
    """One device in one window.

    Attributes:
        device: such as "cpu" or "cuda:0".
        window: number of the window, from 1.
        peak_bytes: most allocated at once. On the CPU what was allocated before the window does not count, so
            memory released later than it was recorded may make totals negative.
        time_us: microseconds since the first event of the window.
        allocated_bytes: in use after each event.
        reserved_bytes: held by the caching allocator after each event; 0 where there is none.
    """

    device: str
    window: int
    peak_bytes: int
    time_us: tuple[float, ...]
    allocated_bytes: tuple[int, ...]
    reserved_bytes: tuple[int, ...]


def timelines(results: Any, window: int) -> list[MemoryTimeline]:
    """Read the allocations of one window.

    Args:
        results: the `torch.autograd.profiler.profile` that recorded it with memory on.
        window: its number.
    """
    tree = results.kineto_results.experimental_event_tree()
    allocations = sorted((event for event in _walk(tree) if event.tag.name == "Allocation"), key=_start)
    found: dict[str, list[Any]] = {}
    for event in allocations:
        found.setdefault(str(event.extra_fields.device), []).append(event)
    return [_timeline(device, window, events, _start(allocations[0])) for device, events in sorted(found.items())]


def _timeline(device: str, window: int, events: list[Any], origin_ns: int) -> MemoryTimeline:
    allocated = tuple(int(event.extra_fields.total_allocated) for event in events)
    return MemoryTimeline(
        device,
        window,
        max(allocated),
        tuple((_start(event) - origin_ns) / 1000 for event in events),
        allocated,
        tuple(int(event.extra_fields.total_reserved) for event in events),
    )


def _walk(tree: Iterable[Any]) -> Iterator[Any]:
    waiting = list(tree)
    while waiting:
        event = waiting.pop()
        yield event
        waiting.extend(event.children)


def _start(event: Any) -> int:
    return int(event.start_time_ns)
