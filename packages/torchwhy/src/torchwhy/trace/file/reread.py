"""Events read again from where they begin, for whoever needs what the first reading didn't keep."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from torchwhy.trace.file.columns import Columns, Int64
from torchwhy.trace.file.limits import LIMITS, Excess
from torchwhy.trace.file.recovery import find_start
from torchwhy.trace.file.source import Chunks, Source
from torchwhy.trace.file.tolerant import CLOSE, IN_LIST, IN_OBJECT, OPEN, Broken, Cut, Parser, decoded

__all__ = ["read_arguments", "read_events"]

T = TypeVar("T")


def read_arguments(source: Source, offsets: Int64) -> list[dict[str, Any]]:
    """Read the whole `args` of some events again, in one pass over the file.

    Args:
        source: the file `scan` has read; an open one must stand at its beginning again.
        offsets: where events begin, as in `Columns.offset`, in any order.

    Returns:
        For each offset what the event's `args` hold: numbers, texts, lists, objects. Bare words such as NaN are None.
        Empty for an event without `args`, and where no event begins.
    """
    wanted = sorted(set(offsets.tolist()))
    found: dict[int, dict[str, Any]] = {}
    with Chunks(source) as chunks:
        window = _Window(iter(chunks))
        for offset in wanted:
            found[offset] = _read_at(window, offset, _arguments, {})
    return [found[offset] for offset in offsets.tolist()]


def read_events(source: Source, columns: Columns, rows: npt.NDArray[np.integer[Any]]) -> Iterator[bytes]:
    """Read the JSON of some events again, in one pass over the file.

    Args:
        source: the file `scan` has read; an open one must stand at its beginning again.
        columns: what it has read.
        rows: of the events, ascending.

    Returns:
        For each row its event in the file, repaired if the file is damaged; b"" if no event begins there.
    """
    after: Int64 = np.append(columns.offset[1:], columns.size)
    found = columns.repairs
    repaired = found.control_characters or found.invalid_utf8 or found.unescaped_quotes or found.not_numbers
    proper = not (repaired or found.stray_commas or found.damaged_events)
    with Chunks(source) as chunks:
        window = _Window(iter(chunks))
        for offset, end in zip(columns.offset[rows].tolist(), after[rows].tolist(), strict=True):
            if proper and end < columns.size:  # after the last event stands the rest of the file
                start = window.place(offset)
                if start + end - offset > len(window.data):
                    window.grow(start, end - offset)
                    start = 0
                yield window.data[start : start + end - offset].rstrip(b", \t\r\n")
            else:
                yield _read_at(window, offset, _json, b"")


class _Window:
    """The part of a stream at hand: what lies before it is forgotten."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._start = 0
        self.data = b""
        self.final = False

    def place(self, offset: int) -> int:
        """Return where in `data` this place of the stream is, after all that came before."""
        while self._start + len(self.data) <= offset and not self.final:
            self.grow(len(self.data), 1)
        return max(offset - self._start, 0)

    def grow(self, drop: int, size: int) -> None:
        """Forget the first bytes and read on until there are `size`, or the stream ends."""
        self._start += drop
        parts = [self.data[drop:]]
        length = len(parts[0])
        while length < size:
            chunk = next(self._chunks, b"")
            if not chunk:
                self.final = True
                break
            parts.append(chunk)
            length += len(chunk)
        self.data = b"".join(parts)


def _read_at(window: _Window, offset: int, read: Callable[[Parser, int], T], otherwise: T) -> T:
    """Read the event that begins at this place of the stream; `otherwise` where none does."""
    while True:
        start = window.place(offset)
        try:
            return _read(window.data, start, window.final, read, otherwise)
        except Cut:
            size = len(window.data) - start
            if window.final or size > LIMITS.element:
                return otherwise
        window.grow(start, 2 * size + 1)


def _read(data: bytes, start: int, final: bool, read: Callable[[Parser, int], T], otherwise: T) -> T:
    """Read the event that begins at `start`; raise Cut when more of it is needed."""
    if start >= len(data):
        raise Cut
    if data[start] != OPEN:
        return otherwise
    parser = Parser(data)
    try:
        return read(parser, start)
    except Excess:
        return otherwise
    except Broken:
        following = find_start(data, start + 1, len(data))
        if following < 0 and not final:
            raise Cut from None
    parser.attempt(len(data) if following < 0 else following)
    try:
        return read(parser, start)
    except (Broken, Excess):
        return otherwise


def _json(parser: Parser, start: int) -> bytes:
    out: list[str] = []
    parser.value(start, IN_LIST, out)
    return "".join(out).encode()


def _arguments(parser: Parser, start: int) -> dict[str, Any]:
    arguments: dict[str, Any] = {}
    i = parser.separate(start + 1, CLOSE, True)
    while parser.data[i] != CLOSE:
        key, i = parser.key(i)
        if key == b"args":
            arguments, i = _members(parser, i)
        else:
            i = parser.value(i, IN_OBJECT)
        i = parser.separate(i, CLOSE, False)
    return arguments


def _members(parser: Parser, i: int) -> tuple[dict[str, Any], int]:
    members: dict[str, Any] = {}
    if parser.data[i] != OPEN:
        return members, parser.value(i, IN_OBJECT)
    i = parser.separate(i + 1, CLOSE, True)
    while parser.data[i] != CLOSE:
        raw, i = parser.key(i)
        out: list[str] = []
        i = parser.value(i, IN_OBJECT, out)
        members[decoded(raw)] = _loaded("".join(out))
        i = parser.separate(i, CLOSE, False)
    return members, i + 1


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except (RecursionError, ValueError):  # nested too deep, or an integer of too many digits
        return text
