"""Snapshots that `torch.cuda.memory._dump_snapshot` wrote: `torchwhy.load_snapshot`."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from torchwhy.allocator.plain_values import blocks_of, dicts, frame_text, integer, lists
from torchwhy.allocator.segments import USED, Segment, segment_of
from torchwhy.allocator.unpickling import PickleError, unpickled
from torchwhy.errors import TraceError
from torchwhy.trace.file.columns import Int64
from torchwhy.trace.meaning.allocations import purpose
from torchwhy.trace.meaning.frames import module_path, own_frame

__all__ = ["EARLIER", "UNKNOWN", "DeviceMemory", "Holder", "OutOfMemory", "Snapshot", "held_by", "load_snapshot"]

LARGEST: Final = 2 << 30
"""Bytes of a file that is read, at most; it takes several times as much memory."""

LONGEST_STACK: Final = 200
"""Frames of a stack that are read."""

EARLIER: Final = ("allocated before the recorded history",)
UNKNOWN: Final = ("addresses were not recorded",)
"""The stack of what was there when the history began."""


@dataclass(frozen=True)
class Holder:
    """Memory that one stack of calls holds.

    Attributes:
        line: of the program's own code, as "train.py(34): step"; "" where no frame is the program's.
        purpose: what it is for, by its stack; see `trace.meaning.allocations`.
        module: those it was allocated in, the outermost first, as in "Net_0.Linear_1"; see `frames.module_path`.
        bytes: requested.
        blocks: how many allocations.
        stack: frames, innermost first.
    """

    line: str
    purpose: str
    module: str
    bytes: int
    blocks: int
    stack: tuple[str, ...]


@dataclass(frozen=True)
class OutOfMemory:
    """A request that failed.

    Attributes:
        bytes: requested. allocated_bytes, reserved_bytes: by PyTorch then. free_bytes: on the device then.
        line: of the program's own code.
    """

    bytes: int
    allocated_bytes: int
    reserved_bytes: int
    free_bytes: int
    line: str


@dataclass(frozen=True)
class DeviceMemory:
    """The memory of one device. Sizes are bytes; of allocations those requested, which the allocator rounds up.

    Attributes:
        device: its number; -1 for the host's memory.
        segments: pieces of memory PyTorch took from the driver; 0 where a trace was read, which doesn't name them.
        reserved_bytes: their sizes.
        allocated_bytes: in use when the snapshot was taken.
        rounding_bytes: what the blocks in use are larger than was requested.
        split_bytes: free between blocks in use, so that it can't be given back: fragmentation.
        cached_bytes: in segments without any block in use.
        largest_free_bytes: the largest free block.
        peak_bytes: the most that was allocated in the recorded history.
        peak_us: when, by the clock of `moments_us`; None without history.
        holders: who held the memory at the peak, the largest first.
        moments_us, allocated, reserved: the history, since its first event or the trace's beginning, and what was
            allocated and what was reserved after each of its events.
        events: of the history.
        out_of_memory: requests that failed.
        layout: the segments with their blocks.
    """

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
    holders: tuple[Holder, ...]
    moments_us: Int64 = field(repr=False)
    allocated: Int64 = field(repr=False)
    reserved: Int64 = field(repr=False)
    events: int
    out_of_memory: tuple[OutOfMemory, ...]
    layout: tuple[Segment, ...] = field(repr=False)

    @property
    def name(self) -> str:
        """Such as "GPU 0"; "CPU" for the host's memory."""
        return "CPU" if self.device < 0 else f"GPU {self.device}"


@dataclass(frozen=True)
class Snapshot:
    """A file.

    Attributes:
        file: its name.
        devices: those that hold memory or have a history.
    """

    file: str
    devices: tuple[DeviceMemory, ...]


def load_snapshot(path: str | os.PathLike[str]) -> Snapshot:
    """Read a snapshot of the caching allocator, without running anything the file may name.

        torch.cuda.memory._record_memory_history()
        ...
        torch.cuda.memory._dump_snapshot("snapshot.pickle")

        torchwhy.load_snapshot("snapshot.pickle").devices[0].holders

    Args:
        path: of the file.

    Raises:
        TraceError: it cannot be read, or is no such snapshot.
    """
    name = os.fspath(path)
    try:
        size = Path(path).stat().st_size
        if size > LARGEST:
            raise TraceError(
                f"{name} has {size:,} bytes, snapshots of up to {LARGEST:,} are read: record fewer entries"
            )
        data = Path(path).read_bytes()
    except OSError as error:
        raise TraceError(f"{name} cannot be read: {error.strerror or error}") from error
    try:
        found = unpickled(data)
    except PickleError as error:
        raise TraceError(f"{name} is not a memory snapshot: {error}") from None
    if not isinstance(found, dict) or not isinstance(found.get("segments"), list):
        raise TraceError(f"{name} is not a memory snapshot: it has no list of segments")
    segments: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for segment in dicts(found["segments"]):
        segments[integer(segment.get("device"))].append(segment)
    traces = dict(enumerate(lists(found.get("device_traces"))))
    stacks = _Stacks()
    numbers = sorted({*segments, *(number for number, entries in traces.items() if entries)})
    return Snapshot(
        name, tuple(_device(number, segments[number], traces.get(number, []), stacks) for number in numbers)
    )


class _Stacks:
    """The stacks of a file, each read once: entries share them."""

    def __init__(self) -> None:
        self._of: dict[int, tuple[str, ...]] = {}

    def of(self, entry: dict[str, Any]) -> tuple[str, ...]:
        frames = entry.get("frames")
        if frames is None:  # before 2023, a block had them in its history
            history = dicts(entry.get("history"))
            frames = next(history, {}).get("frames")
        if not isinstance(frames, list):
            return ()
        if id(frames) not in self._of:
            self._of[id(frames)] = tuple(frame_text(frame) for frame in dicts(frames[:LONGEST_STACK]))
        return self._of[id(frames)]


def _device(number: int, segments: list[dict[str, Any]], entries: list[Any], stacks: _Stacks) -> DeviceMemory:
    history = list(dicts(entries))
    blocks = [block for segment in segments for block in blocks_of(segment)]
    held = {address: block for block in blocks if block.get("state") == USED and (address := _address(block))}
    pieces = tuple(map(segment_of, segments))
    free, split = sum(one.free_bytes for one in pieces), sum(one.split_bytes for one in pieces)
    reserved = sum(one.bytes for one in pieces)
    before = _before(history, held, stacks)
    allocated = _timeline(history, before)
    begun = sum(size for size, _ in before.values())
    worst = int(allocated.argmax()) if len(allocated) and int(allocated.max()) > begun else -1
    alive = _alive(history[: worst + 1], before, stacks)
    times = np.array([integer(entry.get("time_us")) for entry in history], np.int64)
    times -= times[0] if len(times) else 0
    return DeviceMemory(
        device=number,
        segments=len(segments),
        reserved_bytes=reserved,
        allocated_bytes=sum(_requested(block) for block in held.values()),
        rounding_bytes=sum(integer(block.get("size")) - _requested(block) for block in held.values()),
        split_bytes=split,
        cached_bytes=free - split,
        largest_free_bytes=max((one.largest_free_bytes for one in pieces), default=0),
        peak_bytes=sum(size for size, _ in alive.values()),
        peak_us=int(times[max(worst, 0)]) if len(times) else None,
        holders=held_by(alive.values()),
        moments_us=times,
        allocated=allocated,
        reserved=(taken := _reserved(history, reserved)),
        events=len(history),
        out_of_memory=_failures(history, allocated, taken, stacks),
        layout=pieces,
    )


def _before(
    history: list[dict[str, Any]], held: dict[int, dict[str, Any]], stacks: _Stacks
) -> dict[int, tuple[int, tuple[str, ...]]]:
    """What was allocated before the history began, by address: size and stack."""
    found: dict[int, tuple[int, tuple[str, ...]]] = {}
    seen: set[int] = set()
    for entry in history:
        address = _address(entry)
        if entry.get("action") == "free_requested" and address not in seen:
            found[address] = integer(entry.get("size")), EARLIER
        if entry.get("action") in ("alloc", "free_requested"):
            seen.add(address)
    for address, block in held.items():
        if address not in seen:
            found[address] = _requested(block), stacks.of(block)
    return found


def _timeline(history: list[dict[str, Any]], before: dict[int, tuple[int, tuple[str, ...]]]) -> Int64:
    """What was allocated after each event."""
    change = np.zeros(len(history), np.int64)
    for i, entry in enumerate(history):
        action = entry.get("action")
        if action in ("alloc", "free_requested"):
            change[i] = integer(entry.get("size")) * (1 if action == "alloc" else -1)
    found: Int64 = np.cumsum(change) + sum(size for size, _ in before.values())
    return found


def _alive(
    history: list[dict[str, Any]], before: dict[int, tuple[int, tuple[str, ...]]], stacks: _Stacks
) -> dict[int, tuple[int, tuple[str, ...]]]:
    """What is allocated after these events, by address."""
    found = dict(before)
    for entry in history:
        action = entry.get("action")
        if action == "alloc":
            found[_address(entry)] = integer(entry.get("size")), stacks.of(entry)
        elif action == "free_requested":
            found.pop(_address(entry), None)
    return found


def held_by(alive: Iterable[tuple[int, tuple[str, ...]]]) -> tuple[Holder, ...]:
    """Return who holds allocations of these sizes and stacks, the largest first."""
    sizes: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for size, stack in alive:
        sizes[stack].append(size)
    held = [
        Holder(own_frame(stack), _purpose(stack), module_path(stack), sum(each), len(each), stack)
        for stack, each in sizes.items()
    ]
    return tuple(sorted(held, key=lambda one: (-one.bytes, one.stack)))


def _purpose(stack: tuple[str, ...]) -> str:
    return purpose(stack) if stack not in (EARLIER, UNKNOWN) else "unknown"


def _reserved(history: list[dict[str, Any]], now: int) -> Int64:
    """What was reserved after each event: what is now, less the segments taken since."""
    change = np.zeros(len(history), np.int64)
    for i, entry in enumerate(history):
        action = entry.get("action")
        if action in ("segment_alloc", "segment_map"):
            change[i] = integer(entry.get("size"))
        elif action in ("segment_free", "segment_unmap"):
            change[i] = -integer(entry.get("size"))
    found: Int64 = now - change.sum() + np.cumsum(change)
    return found


def _failures(
    history: list[dict[str, Any]], allocated: Int64, reserved: Int64, stacks: _Stacks
) -> tuple[OutOfMemory, ...]:
    """Requests that failed."""
    return tuple(
        OutOfMemory(
            integer(entry.get("size")),
            int(allocated[i]),
            int(reserved[i]),
            integer(entry.get("device_free")),
            own_frame(stacks.of(entry)),
        )
        for i, entry in enumerate(history)
        if entry.get("action") == "oom"
    )


def _requested(block: dict[str, Any]) -> int:
    history = next(dicts(block.get("history")), {})
    return integer(block.get("requested_size", history.get("real_size", block.get("size"))))


def _address(entry: dict[str, Any]) -> int:
    return integer(entry.get("addr", entry.get("address")))
