"""Two snapshots of one program compared: who holds more at the peak than before, and who less."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

from torchwhy.allocator.snapshot import DeviceMemory, Holder, Snapshot
from torchwhy.trace.meaning.frames import without_numbers

__all__ = ["DeviceChange", "HolderChange", "changes"]


@dataclass(frozen=True)
class HolderChange:
    """The memory that one stack of calls holds at the peak, before and after.

    Numbers of lines don't distinguish stacks.

    Attributes:
        holder: of the snapshot after; where it holds nothing there, of the one before.
        before_bytes, after_bytes: requested.
        before_blocks, after_blocks: how many allocations.
    """

    holder: Holder
    before_bytes: int
    after_bytes: int
    before_blocks: int
    after_blocks: int

    @property
    def bytes(self) -> int:
        """How much more it holds."""
        return self.after_bytes - self.before_bytes


@dataclass(frozen=True)
class DeviceChange:
    """One device in both snapshots.

    Attributes:
        name: of the device.
        before, after: None where a snapshot doesn't have it.
        holders: the largest change first; those that hold the same are left out.
    """

    name: str
    before: DeviceMemory | None
    after: DeviceMemory | None
    holders: tuple[HolderChange, ...]


def changes(before: Snapshot, after: Snapshot) -> tuple[DeviceChange, ...]:
    """Return how the memory of each device changed."""
    sides = [{memory.device: memory for memory in snapshot.devices} for snapshot in (before, after)]
    found = []
    for number in sorted({*sides[0], *sides[1]}):
        a, b = (side.get(number) for side in sides)
        name = next(memory.name for memory in (a, b) if memory)
        found.append(DeviceChange(name, a, b, _holders(_by_stack(a), _by_stack(b))))
    return tuple(found)


def _by_stack(memory: DeviceMemory | None) -> dict[tuple[str, ...], Holder]:
    found: dict[tuple[str, ...], list[Holder]] = defaultdict(list)
    for holder in memory.holders if memory else ():
        found[tuple(map(without_numbers, holder.stack))].append(holder)
    return {
        stack: replace(same[0], bytes=sum(one.bytes for one in same), blocks=sum(one.blocks for one in same))
        for stack, same in found.items()
    }


def _holders(before: dict[tuple[str, ...], Holder], after: dict[tuple[str, ...], Holder]) -> tuple[HolderChange, ...]:
    found = []
    for stack in {**after, **before}:
        a, b = before.get(stack), after.get(stack)
        shown = b or a
        assert shown is not None
        sizes = (a.bytes if a else 0, b.bytes if b else 0)
        if sizes[0] != sizes[1]:
            found.append(HolderChange(shown, *sizes, a.blocks if a else 0, b.blocks if b else 0))
    return tuple(sorted(found, key=lambda one: (-abs(one.bytes), one.holder.stack)))
