"""Columns of integers as few bytes, which `web/block.js` reads back."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = ["deflated", "packed", "planes", "varint", "zigzag"]

_SEVEN_BITS: Final = np.uint64(127)
_LONGER: Final = np.uint64(1) << np.arange(7, 64, 7, dtype=np.uint64)
"""An integer takes one more byte of seven bits from this value on."""


def zigzag(values: npt.ArrayLike) -> npt.NDArray[np.uint64]:
    """Return signed integers as unsigned ones, small where they are near 0.

    >>> zigzag([0, -1, 1, -2]).tolist()
    [0, 1, 2, 3]
    """
    signed = np.asarray(values, np.int64)
    return ((signed << 1) ^ (signed >> 63)).astype(np.uint64)


def varint(values: npt.ArrayLike) -> bytes:
    """Return unsigned integers in LEB128: seven bits a byte, the lowest first, the high bit where more follow.

    >>> varint([1, 127, 128]).hex(" ")
    '01 7f 80 01'
    """
    rest = np.array(values, np.uint64)
    length = 1 + np.searchsorted(_LONGER, rest, "right")
    place = np.cumsum(length) - length
    out = np.zeros(int(length.sum()), np.uint8)
    live = np.arange(len(rest))
    byte = 0
    while len(live):
        more = length[live] > byte + 1
        out[place[live] + byte] = (rest[live] & _SEVEN_BITS) | (more.astype(np.uint64) << np.uint64(7))
        rest[live] >>= np.uint64(7)
        live = live[more]
        byte += 1
    return out.tobytes()


def planes(values: npt.ArrayLike) -> bytes:
    """Return the lowest byte of all unsigned integers, then the next of all, up to the last byte of the largest.

    >>> planes([1, 258]).hex(" ")
    '01 02 00 01'
    """
    unsigned = np.asarray(values, np.uint64)
    width = max(1, (int(unsigned.max(initial=0)).bit_length() + 7) // 8)
    columns = unsigned.astype("<u8").view(np.uint8).reshape(-1, 8)
    return columns[:, :width].T.tobytes()


def deflated(data: bytes, level: int = 6) -> bytes:
    """Return raw deflate, without header and checksum, as `DecompressionStream("deflate-raw")` takes it."""
    packer = zlib.compressobj(level, zlib.DEFLATED, -15, 9)
    return packer.compress(data) + packer.flush()


def packed(header: Mapping[str, Any], columns: Mapping[str, npt.ArrayLike | str]) -> bytes:
    """Return a header and columns as one deflated block.

    The block is the length of the header (4 bytes, lowest first), the header as JSON, and the columns one after the
    other. Its `columns` says for each how it is written, where it begins after the header, its bytes and its entries.

    Args:
        header: what is no column.
        columns: unsigned integers, each written the way that takes fewer bytes deflated; or a text.
    """
    table: dict[str, list[Any]] = {}
    parts: list[bytes] = []
    offset = 0
    for name, values in columns.items():
        if isinstance(values, str):
            how, data, count = "text", values.encode(), len(values)
        else:
            how, data, count = _shortest(np.asarray(values, np.uint64))
        table[name] = [how, offset, len(data), count]
        parts.append(data)
        offset += len(data)
    head = json.dumps({**header, "columns": table}, separators=(",", ":")).encode()
    return deflated(b"".join([len(head).to_bytes(4, "little"), head, *parts]))


def _shortest(values: npt.NDArray[np.uint64]) -> tuple[str, bytes, int]:
    ways = ("varint", varint(values)), ("planes", planes(values))
    how, data = min(ways, key=lambda way: len(deflated(way[1], 1)))
    return how, data, len(values)
