"""The wire format of protocol buffers: fields of a message by number, without generated code.

Format: https://protobuf.dev/programming-guides/encoding. The few messages that are read need no library for it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

__all__ = ["Malformed", "double", "fields", "signed", "text", "top_level"]

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

MASK: Final = (1 << 64) - 1


class Malformed(Exception):  # noqa: N818 -- caught where a message is read
    """These bytes are no message."""


def _varint(data: bytes, place: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while place < end:
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & MASK, place
        shift += 7
        if shift > 63:
            break
    raise Malformed


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the number and value of each field: an integer (of 64 bits, unsigned), or the bytes of the others.

    Raises:
        Malformed: the bytes are no message.
    """
    place, end = 0, len(data)
    while place < end:
        key = data[place]
        place += 1
        if key > 0x7F:
            key, place = _varint(data, place - 1, end)
        wire = key & 7
        if wire == VARINT:
            value = data[place] if place < end else 0x80
            if value > 0x7F:
                value, place = _varint(data, place, end)
            else:
                place += 1
            yield key >> 3, value
            continue
        if wire == BYTES:
            length, place = _varint(data, place, end)
        elif wire in (FIXED64, FIXED32):
            length = 8 if wire == FIXED64 else 4
        else:
            raise Malformed
        if length > end - place:
            raise Malformed
        chunk = data[place : place + length]
        yield key >> 3, chunk
        place += length


def top_level(chunks: Iterator[bytes], number: int, most: int) -> Iterator[bytes]:
    """Yield the messages in field `number` of a message that comes in pieces; others are passed over.

    Args:
        chunks: the bytes.
        number: of the field.
        most: bytes that one message may have.

    Raises:
        Malformed: what follows is no field, ends early or has more than `most` bytes.
    """
    data = b""
    for chunk in chunks:
        data += chunk
        place = 0
        while True:
            found = _next_field(data, place, most)
            if found is None:
                break
            key, start, end = found
            if key == number << 3 | BYTES:
                yield data[start:end]
            place = end
        data = data[place:]
    if data:
        raise Malformed


def _next_field(data: bytes, place: int, most: int) -> tuple[int, int, int] | None:
    """Key, and where the value begins and ends; None where it isn't all there yet."""
    try:
        key, start = _varint(data, place, len(data))
        wire = key & 7
        if wire == BYTES:
            length, start = _varint(data, start, len(data))
        elif wire == VARINT:
            length = _varint(data, start, len(data))[1] - start
        else:
            length = {FIXED64: 8, FIXED32: 4}.get(wire, -1)
    except Malformed:
        if len(data) - place >= 20:  # two numbers have no more bytes
            raise
        return None
    if length < 0 or length > most:
        raise Malformed
    return (key, start, start + length) if start + length <= len(data) else None


def signed(value: int | bytes) -> int:
    """Return a field of type int64 or int32: negative numbers have their two's complement in 64 bits."""
    number = value if isinstance(value, int) else int.from_bytes(value, "little")
    return number - (1 << 64) if number >> 63 else number


def double(value: int | bytes) -> float | None:
    """Return a field of type double; None for fields of other types."""
    return struct.unpack("<d", value)[0] if isinstance(value, bytes) and len(value) == 8 else None


def text(value: int | bytes) -> str:
    """Return a field of type string."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""
