"""Values of a snapshot or dump, which may be anything: what has another kind than expected counts as nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchwhy.wording import shared_path

__all__ = ["blocks_of", "dicts", "frame_text", "integer", "lists", "plain"]


def integer(value: object) -> int:
    """A number of bytes or an address; 0 for anything else, or too large a number."""
    return value if isinstance(value, int) and 0 <= value < 1 << 63 else 0


def plain(value: object) -> str:
    """A text or number as it is written; of anything else its kind: lists may hold each other without end."""
    return str(value) if isinstance(value, str | int | float | None) else type(value).__name__


def dicts(value: object) -> Iterator[dict[str, Any]]:
    """The dictionaries in a list."""
    return (item for item in value if isinstance(item, dict)) if isinstance(value, list) else iter(())


def lists(value: object) -> list[list[Any]]:
    """The items of a list, an empty list instead of anything else."""
    return [item if isinstance(item, list) else [] for item in value] if isinstance(value, list) else []


def blocks_of(segment: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The blocks of a segment, each with its address: before 2023 only the segment had one."""
    address = integer(segment.get("address"))
    for block in dicts(segment.get("blocks")):
        yield block if "address" in block else {**block, "address": address}
        address += integer(block.get("size"))


def frame_text(frame: dict[str, Any]) -> str:
    """A frame of a stack as traces write it, as "train.py(34): step"."""
    file = plain(frame.get("filename", ""))
    for folder in ("site-packages/", "dist-packages/"):
        file = file.rpartition(folder)[2]
    return f"{shared_path(file)}({integer(frame.get('line'))}): {plain(frame.get('name', ''))}"
