"""The report of `torchwhy memory` on a snapshot of the allocator, as a document."""

from __future__ import annotations

from collections import Counter
from pathlib import PurePath
from typing import Any, Final

import msgspec

from torchwhy.allocator.segments import Pool, pools_of
from torchwhy.allocator.snapshot import DeviceMemory, Holder, OutOfMemory, Snapshot
from torchwhy.present.document import (
    Amount,
    Block,
    Calls,
    Cell,
    Column,
    Document,
    Facts,
    File,
    Heading,
    Table,
    Text,
    Words,
    rows_of,
)
from torchwhy.schema import SCHEMA
from torchwhy.trace.meaning.frames import short_frame
from torchwhy.wording import counted, duration, percent, shared_path, size_text

__all__ = ["SnapshotData", "allocating_place", "device_blocks", "memory_snapshot"]

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
    pools: tuple[Pool, ...]
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
        blocks += [Heading(device.name), *device_blocks(device)]
    if not blocks:
        blocks.append(Text("No memory was allocated on any device, and no history was recorded."))
    data = SnapshotData(SCHEMA, shared_path(snapshot.file), tuple(_data(device) for device in snapshot.devices))
    return Document(PurePath(snapshot.file).name, tuple(blocks), data, command="memory", file=snapshot.file)


def device_blocks(memory: DeviceMemory) -> list[Block]:
    """Return what there is to say of one device."""
    found: list[Block] = [Text(_failure(failure), look="bad") for failure in memory.out_of_memory]
    peak = f"{size_text(memory.peak_bytes)} allocated"
    if memory.peak_us is None:
        peak += " when the snapshot was taken: no history was recorded (torch.cuda.memory._record_memory_history())"
    else:
        first, last = (duration(int(memory.moments_us[i])) for i in (0, -1))
        history = f"a history of {counted(memory.events, 'event')}, from {first} to {last}"
        peak += f" at {duration(memory.peak_us)}, in {history}"
    facts = [("peak", peak), ("at the end", f"{size_text(memory.allocated_bytes)} allocated")]
    if memory.reserved_bytes:
        held = f" in {counted(memory.segments, 'segment')}" if memory.segments else ""
        facts.append(("reserved", f"{size_text(memory.reserved_bytes)}{held}"))
    if memory.segments:
        split, cached = size_text(memory.split_bytes), size_text(memory.cached_bytes)
        largest = f"the largest free block has {size_text(memory.largest_free_bytes)}"
        facts.append(("free", f"{split} between blocks in use, {cached} in unused segments; {largest}"))
    if memory.segments and memory.reserved_bytes:
        facts.append(("fragmentation", f"{percent(memory.split_bytes / memory.reserved_bytes)} of what is reserved"))
    found.append(Facts(tuple(facts)))
    found += [_purposes(memory), _modules(memory), _holders(memory)] if memory.holders else []
    return [*found, _pools(memory)] if memory.segments else found


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
    rows: list[tuple[Cell, ...]] = [(name, _size(size), _share(size, memory)) for name, size in sizes.most_common()]
    columns = (Column("purpose"), Column("size", number=True), Column("share", number=True))
    return Table(columns, rows_of(rows), "At the peak, by purpose", noun=("purpose", "purposes"))


def _modules(memory: DeviceMemory) -> Table:
    """Who holds the memory, by module; without a row where no stack goes through any."""
    sizes: Counter[str] = Counter()
    for holder in memory.holders:
        sizes[holder.module] += holder.bytes
    named = any(sizes)
    rows: list[tuple[Cell, ...]] = [
        (_size(size), _share(size, memory), Calls(tuple(name.split("."))) if name else Words("outside of modules"))
        for name, size in sizes.most_common()
        if named
    ]
    columns = (Column("size", number=True), Column("share", number=True), Column("module"))
    return Table(columns, rows_of(rows, HOLDERS), "At the peak, by module", noun=("module", "modules"))


def allocating_place(holder: Holder) -> str:
    """Where memory was allocated: the program's line, else the innermost frame."""
    return holder.line or (short_frame(holder.stack[0]) if holder.stack else "no stack was recorded")


def _holders(memory: DeviceMemory) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            _size(holder.bytes),
            _share(holder.bytes, memory),
            Amount(f"{holder.blocks:,}", holder.blocks),
            holder.purpose,
            File(allocating_place(holder)),
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


def _pools(memory: DeviceMemory) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            Words(pool.name),
            Amount(str(pool.stream), pool.stream),
            Amount(f"{pool.segments:,}", pool.segments),
            *map(_size, (pool.reserved_bytes, pool.used_bytes, pool.split_bytes, pool.cached_bytes)),
        )
        for pool in pools_of(memory.layout)
    ]
    titles = ("stream", "segments", "reserved", "in use", "split", "unused")
    columns = (Column("pool"), *(Column(title, number=True) for title in titles))
    return Table(columns, rows_of(rows, HOLDERS), "Pools", noun=("pool", "pools"), when="full")


def _size(bytes_: int) -> Amount:
    return Amount(size_text(bytes_), bytes_)


def _share(bytes_: int, memory: DeviceMemory) -> Amount:
    return Amount(percent(bytes_ / max(memory.peak_bytes, 1)), bytes_)


def _data(memory: DeviceMemory) -> DeviceData:
    computed: dict[str, Any] = {"pools": pools_of(memory.layout), "timeline": _timeline(memory)}
    kept: dict[str, Any] = {
        name: getattr(memory, name) for name in DeviceData.__struct_fields__ if name not in computed
    }
    return DeviceData(**kept, **computed)


def _timeline(memory: DeviceMemory) -> tuple[tuple[int, int], ...]:
    """The highest moment of each stretch of the history."""
    count = len(memory.allocated)
    step = -(-count // MOMENTS) or 1
    highest = [i + int(memory.allocated[i : i + step].argmax()) for i in range(0, count, step)]
    return tuple((int(memory.moments_us[i]), int(memory.allocated[i])) for i in highest)
