"""What `torchwhy memory` says about a snapshot of the allocator, as a document."""

from __future__ import annotations

from collections import Counter
from typing import Final

import msgspec

from torchwhy.allocator.snapshot import DeviceMemory, Holder, OutOfMemory, Snapshot
from torchwhy.present.document import Block, Cell, Column, Document, Facts, File, Heading, Table, Text, rows_of
from torchwhy.schema import SCHEMA
from torchwhy.trace.meaning.frames import short_frame
from torchwhy.wording import counted, duration, percent, size_text

__all__ = ["SnapshotData", "memory_snapshot"]

HOLDERS: Final = 10
"""Rows of the short view."""

MOMENTS: Final = 200
"""Moments of the timeline in the data, at most: the highest of each stretch of the history."""


class DeviceData(msgspec.Struct, frozen=True):
    """One device; see `allocator.snapshot.DeviceMemory`. `timeline` has pairs of microseconds and bytes."""

    device: int
    segments: int
    reserved_bytes: int
    allocated_bytes: int
    rounding_bytes: int
    split_bytes: int
    cached_bytes: int
    largest_free_bytes: int
    peak_bytes: int
    peak_us: int | None
    events: int
    holders: tuple[Holder, ...]
    timeline: tuple[tuple[int, int], ...]
    out_of_memory: tuple[OutOfMemory, ...]


class SnapshotData(msgspec.Struct, frozen=True):
    """The answer."""

    schema: int
    file: str
    devices: tuple[DeviceData, ...]


def memory_snapshot(snapshot: Snapshot) -> Document:
    """Return who holds the memory of each device at its peak, and what state the allocator's segments are in."""
    blocks: list[Block] = []
    for device in snapshot.devices:
        blocks += _device(device)
    if not blocks:
        blocks.append(Text("No memory was allocated on any device, and no history was recorded."))
    data = SnapshotData(SCHEMA, snapshot.file, tuple(_data(device) for device in snapshot.devices))
    return Document(snapshot.file, tuple(blocks), data, command="memory", file=snapshot.file)


def _device(memory: DeviceMemory) -> list[Block]:
    found: list[Block] = [Heading(f"Device {memory.device}")]
    found += [Text(_failure(failure), look="bad") for failure in memory.out_of_memory]
    peak = f"{size_text(memory.peak_bytes)} allocated"
    if memory.peak_us is None:
        peak += " when the snapshot was taken: no history was recorded (torch.cuda.memory._record_memory_history())"
    else:
        peak += f", {duration(memory.peak_us)} after the history of {counted(memory.events, 'event')} began"
    free = f"{size_text(memory.split_bytes)} between blocks in use, {size_text(memory.cached_bytes)} in unused segments"
    state = f"{size_text(memory.reserved_bytes)} in {counted(memory.segments, 'segment')}"
    facts = [("peak", peak), ("at the end", f"{size_text(memory.allocated_bytes)} allocated"), ("reserved", state)]
    facts += [("free", f"{free}; the largest free block has {size_text(memory.largest_free_bytes)}")]
    if memory.reserved_bytes:
        facts.append(("fragmentation", f"{percent(memory.split_bytes / memory.reserved_bytes)} of what is reserved"))
    found.append(Facts(tuple(facts)))
    found += [_purposes(memory), _holders(memory)] if memory.holders else []
    return found


def _failure(failure: OutOfMemory) -> str:
    where = f" in {failure.line}" if failure.line else ""
    return (
        f"Out of memory{where}: {size_text(failure.bytes)} requested; {size_text(failure.allocated_bytes)} were "
        f"allocated, {size_text(failure.reserved_bytes)} reserved, {size_text(failure.free_bytes)} free on the device."
    )


def _purposes(memory: DeviceMemory) -> Table:
    sizes: Counter[str] = Counter()
    for holder in memory.holders:
        sizes[holder.purpose] += holder.bytes
    rows: list[tuple[Cell, ...]] = [
        (name, size_text(size), percent(size / max(memory.peak_bytes, 1))) for name, size in sizes.most_common()
    ]
    columns = (Column("purpose"), Column("size", number=True), Column("share", number=True))
    return Table(columns, rows_of(rows), "At the peak, by purpose", noun=("purpose", "purposes"))


def _holders(memory: DeviceMemory) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            size_text(holder.bytes),
            percent(holder.bytes / max(memory.peak_bytes, 1)),
            f"{holder.blocks:,}",
            holder.purpose,
            File(holder.line or (short_frame(holder.stack[0]) if holder.stack else "no stack was recorded")),
        )
        for holder in memory.holders
    ]
    columns = (
        Column("size", number=True),
        Column("share", number=True),
        Column("blocks", number=True),
        Column("purpose"),
        Column("allocated by"),
    )
    return Table(columns, rows_of(rows, HOLDERS), "At the peak, by stack", noun=("stack", "stacks"))


def _data(memory: DeviceMemory) -> DeviceData:
    return DeviceData(
        **{name: getattr(memory, name) for name in DeviceData.__struct_fields__ if name != "timeline"},
        timeline=_timeline(memory),
    )


def _timeline(memory: DeviceMemory) -> tuple[tuple[int, int], ...]:
    """The highest moment of each stretch of the history."""
    count = len(memory.allocated)
    step = -(-count // MOMENTS) or 1
    highest = [i + int(memory.allocated[i : i + step].argmax()) for i in range(0, count, step)]
    return tuple((int(memory.moments_us[i]), int(memory.allocated[i])) for i in highest)
