"""The memory that a trace recorded (profile_memory=True), in the form of a snapshot of the allocator."""

from __future__ import annotations

from typing import Final

import numpy as np

from torchwhy.allocator.snapshot import EARLIER, UNKNOWN, DeviceMemory, Snapshot, held_by
from torchwhy.trace.derived.memory import CPU, Memory, allocating_operators, memory_of
from torchwhy.trace.derived.ownership import stack_of
from torchwhy.trace.file.columns import ABSENT, Int64
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.model.trace import Trace

__all__ = ["recorded_memory"]


LOOKED_AT: Final = 5000
"""The largest allocations in use at the peak, whose stacks are looked up."""

SMALLER: Final = ("smaller allocations",)
"""The stack of the others."""


def recorded_memory(trace: Trace) -> Snapshot:
    """Return the memory of each device whose allocations a trace recorded.

    Times begin with the trace. The stack of an allocation begins with its operators. What was allocated before the
    recording, and is in use at the peak, is one holder; so is everything where no addresses were recorded.
    """
    return Snapshot(trace.file, tuple(_device(trace, memory) for memory in trace.derived(memory_of)))


def _device(trace: Trace, memory: Memory) -> DeviceMemory:
    worst = int(memory.allocated.argmax())
    alive = _alive(trace, memory, worst)
    size = memory.change[alive]
    peak = int(memory.allocated[worst])
    smallest = np.sort(size)[-LOOKED_AT:][:1]
    holders = [
        (bytes_, _stack(trace, row) if bytes_ >= smallest[0] else SMALLER)
        for bytes_, row in zip(size.tolist(), memory.rows[alive].tolist(), strict=True)
    ]
    if peak > size.sum():
        addressed = bool((trace.events.integers("Addr", memory.rows) != ABSENT).any())
        holders.append((peak - int(size.sum()), EARLIER if addressed else UNKNOWN))
    moments = (memory.times - trace.beginning) // 1000
    return DeviceMemory(
        device=-1 if memory.kind == CPU else max(memory.device, 0),
        segments=0,
        reserved_bytes=int(memory.reserved[-1]),
        allocated_bytes=int(memory.allocated[-1]),
        rounding_bytes=0,
        split_bytes=0,
        cached_bytes=0,
        largest_free_bytes=0,
        peak_bytes=peak,
        peak_us=int(moments[worst]),
        holders=held_by(holders),
        moments_us=moments,
        allocated=memory.allocated,
        reserved=memory.reserved,
        events=len(memory.rows),
        out_of_memory=(),
        layout=(),
    )


def _alive(trace: Trace, memory: Memory, worst: int) -> Int64:
    """The allocations up to an entry in use after it: the last entry of each address, unless that releases."""
    address = trace.events.integers("Addr", memory.rows[: worst + 1])
    known = np.flatnonzero((address != ABSENT) & (memory.change[: worst + 1] != 0))[::-1]
    _, last = np.unique(address[known], return_index=True)
    entries = np.sort(known[last])
    found: Int64 = entries[memory.change[entries] > 0].astype(np.int64)
    return found


def _stack(trace: Trace, row: int) -> tuple[str, ...]:
    """The innermost and the outermost operator around an allocation, then the Python frames around them."""
    place = int(np.searchsorted(trace.events.rows(Kind.MEMORY), row))
    inner = int(trace.derived(allocating_operators)[place])
    if inner < 0:
        return ()
    outer = trace.calls.outermost(inner, Kind.OPERATOR)
    return (*dict.fromkeys((trace.name(inner), trace.name(outer))), *stack_of(trace, outer))
