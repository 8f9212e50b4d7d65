"""All arguments of a few events, for whoever asks later for what the first reading didn't keep."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from torchfx.profiler.trace.file.columns import Int64
from torchfx.profiler.trace.file.limits import LIMITS, Excess
from torchfx.profiler.trace.file.recovery import find_start
from torchfx.profiler.trace.file.source import Chunks, Source
from torchfx.profiler.trace.file.tolerant import CLOSE, IN_OBJECT, OPEN, Broken, Cut, Parser, decoded

__all__ = ["read_arguments"]


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
            found[offset] = _arguments_at(window, offset)
    return [found[offset] for offset in offsets.tolist()]


class _Window:
    """The part of a stream at hand: what lies before it is forgotten."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._start = 0
        self.data = b""
        self.final = False

    def place(self, offset: int) -> int:
        """Return where in `data` this place of the stream is, behind all that came before."""
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


def _arguments_at(window: _Window, offset: int) -> dict[str, Any]:
    while True:
        start = window.place(offset)
        try:
            return _arguments(window.data, start, window.final)
        except Cut:
            size = len(window.data) - start
            if window.final or size > LIMITS.element:
                return {}
        window.grow(start, 2 * size + 1)


def _arguments(data: bytes, start: int, final: bool) -> dict[str, Any]:
    """Return the `args` of the event that begins at `start`; raise Cut when more of it is needed."""
    if start >= len(data):
        raise Cut
    if data[start] != OPEN:
        return {}
    parser = Parser(data)
    try:
        return _event(parser, start)
    except Excess:
        return {}
    except Broken:
        following = find_start(data, start + 1, len(data))
        if following < 0 and not final:
            raise Cut from None
    parser.attempt(len(data) if following < 0 else following)
    try:
        return _event(parser, start)
    except (Broken, Excess):
        return {}


def _event(parser: Parser, start: int) -> dict[str, Any]:
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
