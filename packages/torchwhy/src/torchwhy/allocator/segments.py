"""Segments: pieces of memory that the allocator took from the driver and hands out as blocks, each in a pool."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from torchwhy.allocator.plain_values import blocks_of, integer

__all__ = ["FREE", "USED", "Pool", "Segment", "pools_of", "segment_of"]

USED: Final = "active_allocated"
FREE: Final = "inactive"


@dataclass(frozen=True)
class Segment:
    """One segment.

    Attributes:
        pool: "large" (blocks of more than 1 MB) or "small"; of a private pool, such as that of a CUDA graph, with its
            number, as in "large, private pool 0.1".
        stream: whose work may use it.
        bytes: its size.
        used_bytes: of blocks in use.
        free_bytes: of free blocks; the rest waits for other streams.
        largest_free_bytes: the largest free block.
        used: where blocks in use begin and end, in bytes from its beginning.
    """

    pool: str
    stream: int
    bytes: int
    used_bytes: int
    free_bytes: int
    largest_free_bytes: int
    used: tuple[tuple[int, int], ...]

    @property
    def split_bytes(self) -> int:
        """Free between blocks in use, so that the segment can't be given back."""
        return self.free_bytes if self.free_bytes < self.bytes else 0


@dataclass(frozen=True)
class Pool:
    """The segments of one pool and stream, summed up.

    Attributes:
        name, stream: see `Segment`.
        segments: how many.
        reserved_bytes: their sizes.
        used_bytes: in use.
        split_bytes: free between blocks in use.
        cached_bytes: in segments without any block in use.
        largest_free_bytes: the largest free block.
    """

    name: str
    stream: int
    segments: int
    reserved_bytes: int
    used_bytes: int
    split_bytes: int
    cached_bytes: int
    largest_free_bytes: int


def segment_of(found: dict[str, Any]) -> Segment:
    """Return what a snapshot says of a segment."""
    start = integer(found.get("address"))
    blocks = [(block, integer(block.get("size"))) for block in blocks_of(found)]
    free = [size for block, size in blocks if block.get("state") == FREE]
    used = [
        (integer(block["address"]) - start, size)
        for block, size in blocks
        if block.get("state") == USED and integer(block["address"]) >= start
    ]
    return Segment(
        _pool(found),
        integer(found.get("stream")),
        integer(found.get("total_size")),
        sum(size for block, size in blocks if block.get("state") == USED),
        sum(free),
        max(free, default=0),
        tuple((offset, offset + size) for offset, size in used),
    )


def _pool(found: dict[str, Any]) -> str:
    size, private = str(found.get("segment_type") or "unknown"), found.get("segment_pool_id")
    numbers = [integer(one) for one in private] if isinstance(private, (tuple, list)) else []
    return f"{size}, private pool {'.'.join(map(str, numbers))}" if any(numbers) else size


def pools_of(segments: Iterable[Segment]) -> tuple[Pool, ...]:
    """Return the pools of segments, the largest first."""
    members: dict[tuple[str, int], list[Segment]] = defaultdict(list)
    for segment in segments:
        members[segment.pool, segment.stream].append(segment)
    pools = [
        Pool(
            name,
            stream,
            len(mine),
            sum(one.bytes for one in mine),
            sum(one.used_bytes for one in mine),
            sum(one.split_bytes for one in mine),
            sum(one.free_bytes - one.split_bytes for one in mine),
            max(one.largest_free_bytes for one in mine),
        )
        for (name, stream), mine in members.items()
    ]
    return tuple(sorted(pools, key=lambda pool: (-pool.reserved_bytes, pool.name, pool.stream)))
