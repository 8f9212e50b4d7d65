"""One event of a trace file, key by key, as the scanner in Python reads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from torchwhy.trace.file.columns import ABSENT
from torchwhy.trace.file.decimals import integer, nanoseconds, real
from torchwhy.trace.file.growing import Event, GrowingColumns
from torchwhy.trace.file.tolerant import CLOSE, IN_OBJECT, OPEN, OPEN_LIST, QUOTE, Parser, decoded

__all__ = ["EventReader"]

TIMES: Final = {b"ts": "ts", b"dur": "dur"}
TEXTS: Final = {b"cat": "category", b"name": "name", b"pid": "pid", b"tid": "tid"}
LITERALS: Final = {b"true": b"1", b"false": b"0"}


class EventReader:
    """Reads events into growing columns.

    Args:
        parser: of the file.
        rows: where the events go.
        kinds: the arguments to keep, and as what: "int", "float" or "text".

    Attributes:
        before: bytes of the file before the parser's data.
    """

    def __init__(self, parser: Parser, rows: GrowingColumns, kinds: Mapping[bytes, str]) -> None:
        self.parser, self.rows, self.kinds = parser, rows, kinds
        self.before = 0

    def read(self, start: int) -> int:
        """Read an event's keys and append it to the columns; return the place after."""
        parser, event = self.parser, Event()
        i = parser.separate(start + 1, CLOSE, True)
        while self.parser.data[i] != CLOSE:
            event.empty = False
            key, i = parser.key(i)
            i = self.field(event, key, i)
            i = parser.separate(i, CLOSE, False)
        if not event.empty:
            self.rows.append(event, self.before + start)
        return i + 1

    def field(self, event: Event, key: bytes, i: int) -> int:
        """Read the value of a key into the event; return the place after."""
        if key in TIMES:
            time, i = self.number(i, nanoseconds)
            event.times[TIMES[key]] = ABSENT if time is None else int(time)
        elif key in TEXTS:
            text, i = self.text(i)
            event.texts[TEXTS[key]] = -1 if text is None else text
        elif key == b"ph":
            event.phase = 0
            if self.parser.data[i] == QUOTE:
                raw, i = self.parser.string(i, IN_OBJECT)
                event.phase = raw[0] if raw else 0
            else:
                i = self.parser.value(i, IN_OBJECT)
        elif key == b"id":
            flow, i = self.number(i, integer)
            event.flow = ABSENT if flow is None else int(flow)
        elif key == b"args":
            event.arguments = {}
            i = self.all_arguments(event, i) if self.parser.data[i] == OPEN else self.parser.value(i, IN_OBJECT)
        else:
            i = self.parser.value(i, IN_OBJECT)
        return i

    def all_arguments(self, event: Event, i: int) -> int:
        """Read the keys of `args` that are kept; return the place after."""
        parser = self.parser
        i = parser.separate(i + 1, CLOSE, True)
        while self.parser.data[i] != CLOSE:
            key, i = parser.key(i)
            kind = self.kinds.get(key)
            value: float | None
            if kind is None:
                i = parser.value(i, IN_OBJECT)
            else:
                if kind == "text":
                    value, i = self.text(i)
                else:
                    value, i = self.number(i, integer if kind == "int" else real)
                if value is None:
                    event.arguments.pop(key, None)
                else:
                    event.arguments[key] = value
            i = parser.separate(i, CLOSE, False)
        return i + 1

    # A value

    def number(self, i: int, convert: Callable[[bytes], float | None]) -> tuple[float | None, int]:
        """Read a number, in quotes or not; None for anything else.

        A time that is neither a number nor null is counted; other keys may well hold texts.
        """
        parser, good = self.parser, True
        if self.parser.data[i] == QUOTE:
            raw, i = parser.string(i, IN_OBJECT)
        elif self.parser.data[i] in (OPEN, OPEN_LIST):
            raw, i = b"", parser.value(i, IN_OBJECT)
        else:
            raw, i = parser.word(i, IN_OBJECT)
            good = parser.is_json(raw)
            if raw == b"null":
                return None, i
            raw = LITERALS.get(raw, raw)
        value = convert(raw)
        parser.repairs.not_numbers += good and value is None and convert is nanoseconds
        return value, i

    def text(self, i: int) -> tuple[int | None, int]:
        """Read a text, or the JSON of another value; return its index."""
        parser = self.parser
        if self.parser.data[i] == QUOTE:
            raw, i = parser.string(i, IN_OBJECT)
            return self.rows.intern(decoded(raw)), i
        if self.parser.data[i] in (OPEN, OPEN_LIST):
            out: list[str] = []
            i = parser.value(i, IN_OBJECT, out)
            return self.rows.intern("".join(out)), i
        raw, i = parser.word(i, IN_OBJECT)
        if not parser.is_json(raw) or raw == b"null":
            return None, i
        return self.rows.intern(raw.decode()), i
