"""Memory over time, per device: what tensors occupied and what the allocator had reserved, from `[memory]` events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from torchwhy.trace.file.columns import ABSENT, Int32, Int64, numbered_together
from torchwhy.trace.meaning.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torchwhy.trace.model.steps import Step
    from torchwhy.trace.model.trace import Trace

__all__ = ["CPU", "Memory", "allocating_operator", "allocating_operators", "memory_of", "operator_bytes"]

CPU = 0
"""The device type of the host's memory; the others number GPUs of several vendors."""


@dataclass(frozen=True)
class Memory:
    """The memory of one device, one entry per allocation or release.

    Attributes:
        kind: PyTorch's number of the device type; `CPU` for the host.
        device: its index; -1 for the host.
        rows: of the events, by time.
        times: nanoseconds.
        change: bytes allocated, negative where released.
        allocated: bytes that tensors occupied afterwards.
        reserved: bytes the allocator had taken from the device afterwards; 0 where not recorded.
        absolute: False where the file has no totals: `allocated` then counts from the lowest point it shows.
    """

    kind: int
    device: int
    rows: Int32
    times: Int64
    change: Int64
    allocated: Int64
    reserved: Int64
    absolute: bool

    @property
    def name(self) -> str:
        """Such as "GPU 0"."""
        return "CPU" if self.kind == CPU else f"GPU {max(self.device, 0)}"

    @property
    def peak_allocated(self) -> int:
        """Most bytes that tensors occupied at one time."""
        return int(self.allocated.max(initial=0))

    @property
    def peak_reserved(self) -> int:
        """Most bytes the allocator had taken."""
        return int(self.reserved.max(initial=0))

    @property
    def peak_row(self) -> int:
        """The allocation that led to the peak, or -1."""
        return int(self.rows[int(self.allocated.argmax())]) if len(self.rows) else -1

    @property
    def reserved_at_peak(self) -> int:
        """The memory that the allocator had reserved when tensors occupied most."""
        return int(self.reserved[int(self.allocated.argmax())]) if len(self.rows) else 0

    def at(self, times: npt.ArrayLike) -> Int64:
        """Bytes that tensors occupied at moments; before the first event what it says of the time before it."""
        if not len(self.rows):
            return np.zeros(len(np.atleast_1d(np.asarray(times))), np.int64)
        i = np.searchsorted(self.times, np.atleast_1d(np.asarray(times, np.int64)), "right") - 1
        before = self.allocated[0] - self.change[0]
        found: Int64 = np.where(i >= 0, self.allocated[np.maximum(i, 0)], before)
        return found

    def at_ends(self, steps: Iterable[Step]) -> Int64:
        """Bytes that tensors occupied when each step ended on the host."""
        return self.at([step.end for step in steps])

    def between(self, start: int, end: int) -> slice:
        """The entries of a stretch of time."""
        low, high = np.searchsorted(self.times, [start, end])
        return slice(int(low), int(high))


def memory_of(trace: Trace) -> tuple[Memory, ...]:
    """Return the memory of each device that has events, the host first; `trace.derived(memory_of)` computes it once.

    The host allocates and releases in the order of its clock; what a device's memory held is therefore given by the
    host's time too.
    """
    events = trace.events
    rows = events.rows(Kind.MEMORY)
    if not len(rows):
        return ()
    kinds, devices = events.integers("Device Type", rows), events.integers("Device Id", rows)
    kinds = np.where(kinds == ABSENT, np.where(devices < 0, CPU, 1), kinds)
    devices = np.where(devices == ABSENT, -1, devices)
    pairs, which = numbered_together(kinds, devices)
    return tuple(_memory(trace, int(pairs[0, i]), int(pairs[1, i]), rows[which == i]) for i in range(pairs.shape[1]))


def _memory(trace: Trace, kind: int, device: int, rows: Int32) -> Memory:
    events = trace.events
    change, total = events.integers("Bytes", rows), events.integers("Total Allocated", rows)
    reserved = events.integers("Total Reserved", rows)
    change = np.where(change == ABSENT, 0, change)
    absolute = bool((total != ABSENT).all())
    if not absolute:  # what was allocated before the trace is released in it, so the sum may fall below its beginning
        total = np.cumsum(change)
        total = total - min(int(total.min()), 0)
    reserved = np.where(reserved == ABSENT, 0, reserved)
    return Memory(kind, device, rows, events.ts[rows], change, total, reserved, absolute)


def allocating_operators(trace: Trace) -> Int32:
    """For each `[memory]` event the innermost operator around it on its thread, or -1."""
    events, parent = trace.events, trace.calls.parent
    rows = events.rows(Kind.MEMORY)
    found = np.full(len(rows), -1, np.int32)
    calls = trace.calls.rows
    for lane in np.unique(events.lane[rows]).tolist():
        here = np.flatnonzero(events.lane[rows] == lane)
        mine = calls[events.lane[calls] == lane]
        if not len(mine):
            continue
        times = events.ts[rows[here]]
        around = mine[np.maximum(np.searchsorted(events.ts[mine], times, "right") - 1, 0)]
        around = np.where(events.ts[around] <= times, around, np.int32(-1))
        late = np.flatnonzero((around >= 0) & (events.end[around] < times))
        while len(late):  # the call before has ended: the one around it may not have
            around[late] = parent[around[late]]
            late = late[(around[late] >= 0) & (events.end[around[late]] < times[late])]
        found[here] = around
    innermost = np.append(trace.calls.nearest(events.kind == Kind.OPERATOR), np.int32(-1))
    return innermost[found].astype(np.int32)


def allocating_operator(trace: Trace, row: int) -> int:
    """The outermost operator around a `[memory]` event on its thread, or -1: the innermost is mostly aten::empty."""
    place = int(np.searchsorted(trace.events.rows(Kind.MEMORY), row))
    innermost = int(trace.derived(allocating_operators)[place])
    return trace.calls.outermost(innermost, Kind.OPERATOR) if innermost >= 0 else -1


def operator_bytes(trace: Trace) -> tuple[Int64, Int64]:
    """Bytes allocated less bytes released in each operator itself, on the host and on devices; one entry per row."""
    events = trace.events
    rows, operator = events.rows(Kind.MEMORY), allocating_operators(trace)
    kind, size = events.integers("Device Type", rows), events.integers("Bytes", rows)
    known = (operator >= 0) & (size != ABSENT)
    found = []
    for mine in (known & (kind == CPU), known & (kind != CPU)):
        sums = np.bincount(operator[mine], weights=size[mine], minlength=len(events)).astype(np.int64)
        found.append(sums)
    return found[0], found[1]
