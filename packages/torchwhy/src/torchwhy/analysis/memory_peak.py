"""The most memory that tensors occupied at one time, and the operator that allocated it."""

from __future__ import annotations

import msgspec

from torchwhy.trace.derived.memory import Memory, allocating_operator, memory_of
from torchwhy.trace.derived.ownership import own_line
from torchwhy.trace.model.trace import Trace

__all__ = ["MemoryPeak", "memory_peaks"]


class MemoryPeak(msgspec.Struct, frozen=True):
    """The peak of one device.

    Attributes:
        device: such as "GPU 0".
        allocated_bytes: at the peak; where `counted`, above the least that the recording shows.
        reserved_bytes: that the allocator had taken then; 0 where not recorded.
        at_us: when, in the file's own time.
        operator, line: the outermost operator around the allocation that led to it; "" where they aren't known.
    """

    device: str
    allocated_bytes: int
    reserved_bytes: int
    counted: bool
    at_us: float
    operator: str
    line: str


def memory_peaks(trace: Trace) -> tuple[MemoryPeak, ...]:
    """Return the peak of each device whose allocations were recorded, the host first."""
    return tuple(_peak(trace, memory) for memory in trace.derived(memory_of) if len(memory.rows))


def _peak(trace: Trace, memory: Memory) -> MemoryPeak:
    row = memory.peak_row
    operator = allocating_operator(trace, row)
    return MemoryPeak(
        memory.name,
        memory.peak_allocated,
        memory.reserved_at_peak,
        not memory.absolute,
        int(trace.events.ts[row]) / 1000,
        trace.name(operator) if operator >= 0 else "",
        own_line(trace, operator) if operator >= 0 else "",
    )
