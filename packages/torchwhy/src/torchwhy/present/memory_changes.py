"""The report of `torchwhy memory A B` on two snapshots of the allocator, as a document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import PurePath
from typing import Final

import msgspec

from torchwhy.allocator.changes import DeviceChange, HolderChange, changes
from torchwhy.allocator.snapshot import DeviceMemory, Snapshot
from torchwhy.present.document import (
    Amount,
    Block,
    Calls,
    Cell,
    Column,
    Document,
    File,
    Heading,
    Table,
    Text,
    Words,
    rows_of,
)
from torchwhy.present.memory_snapshot import HOLDERS, allocating_place
from torchwhy.schema import SCHEMA
from torchwhy.wording import shared_path, size_text

__all__ = ["change_blocks", "memory_changes"]

_QUANTITIES: Final = (
    ("peak", "peak_bytes"),
    ("at the end", "allocated_bytes"),
    ("reserved", "reserved_bytes"),
    ("split", "split_bytes"),
    ("unused", "cached_bytes"),
)


class ChangeData(msgspec.Struct, frozen=True):
    """One device; `holders` are those that changed."""

    device: str
    before_peak_bytes: int
    after_peak_bytes: int
    before_reserved_bytes: int
    after_reserved_bytes: int
    holders: tuple[HolderChange, ...]


class ChangesData(msgspec.Struct, frozen=True):
    """The answer."""

    schema: int
    before: str
    after: str
    devices: tuple[ChangeData, ...]


def memory_changes(before: Snapshot, after: Snapshot) -> Document:
    """Return who holds more memory at the peak of `after` than at that of `before`, and who less."""
    found = changes(before, after)
    blocks: list[Block] = []
    for change in found:
        blocks += [Heading(change.name), *change_blocks(change)]
    if not blocks:
        blocks.append(Text("No memory was allocated on any device, in neither of the two."))
    data = ChangesData(SCHEMA, shared_path(before.file), shared_path(after.file), tuple(map(_data, found)))
    about = (f"before: {PurePath(before.file).name}", f"after: {PurePath(after.file).name}")
    return Document("Memory, before and after", tuple(blocks), data, about, command="memory")


def change_blocks(change: DeviceChange) -> list[Block]:
    """Return what there is to say of one device."""
    missing = [side for side, memory in (("before", change.before), ("after", change.after)) if memory is None]
    if missing:
        return [Text(f"The snapshot {missing[0]} has nothing of this device.")]
    by_module: Counter[str] = Counter()
    for one in change.holders:
        by_module[one.holder.module] += one.bytes
    modules: list[tuple[Cell, ...]] = [
        (_more(size), Calls(tuple(name.split("."))) if name else Words("outside of modules"))
        for name, size in sorted(by_module.items(), key=lambda item: (-abs(item[1]), item[0]))
        if any(by_module)
    ]
    stacks: list[tuple[Cell, ...]] = [
        (
            _more(one.bytes),
            *map(_size, (one.before_bytes, one.after_bytes)),
            Amount(f"{one.before_blocks:,} > {one.after_blocks:,}", one.after_blocks - one.before_blocks),
            one.holder.purpose,
            File(allocating_place(one.holder)),
        )
        for one in change.holders
    ]
    columns = (
        *(Column(title, number=True) for title in ("change", "before", "after", "blocks")),
        Column("purpose"),
        Column("allocated by"),
    )
    same = [] if stacks else [Text("At the peak, each stack holds as much as before.")]
    return [
        _totals(change),
        *same,
        Table((Column("change", number=True), Column("module")), rows_of(modules, HOLDERS), "At the peak, by module",
              noun=("module", "modules")),
        Table(columns, rows_of(stacks, HOLDERS), "At the peak, by stack", noun=("stack", "stacks")),
    ]  # fmt: skip


def _totals(change: DeviceChange) -> Table:
    def value(memory: DeviceMemory | None, field: str) -> int:
        return int(getattr(memory, field)) if memory else 0

    rows: list[tuple[Cell, ...]] = []
    for label, field in _QUANTITIES:
        a, b = value(change.before, field), value(change.after, field)
        if a or b:
            rows.append((label, _size(a), _size(b), _more(b - a)))
    titles: Sequence[str] = ("before", "after", "change")
    return Table((Column(), *(Column(title, number=True) for title in titles)), rows_of(rows))


def _size(bytes_: int) -> Amount:
    return Amount(size_text(bytes_), bytes_)


def _more(bytes_: int) -> Amount:
    return Amount(f"{'+' if bytes_ > 0 else ''}{size_text(bytes_)}", bytes_)


def _data(change: DeviceChange) -> ChangeData:
    a, b = change.before, change.after
    return ChangeData(
        change.name,
        a.peak_bytes if a else 0,
        b.peak_bytes if b else 0,
        a.reserved_bytes if a else 0,
        b.reserved_bytes if b else 0,
        change.holders,
    )
