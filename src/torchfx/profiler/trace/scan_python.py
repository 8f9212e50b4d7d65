"""The scanner in plain Python: slow, holds the whole file, and says what the native one has to do, to the bit."""

from __future__ import annotations

import codecs
from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from torchfx.profiler.trace.columns import ABSENT, Argument, Columns
from torchfx.profiler.trace.decimals import integer, nanoseconds, real
from torchfx.profiler.trace.recovery import find_end, find_events, find_start
from torchfx.profiler.trace.tolerant import (
    BLANK_AND_COMMAS,
    CLOSE,
    CLOSE_LIST,
    IN_LIST,
    IN_OBJECT,
    OPEN,
    OPEN_LIST,
    QUOTE,
    Broken,
    Cut,
    Parser,
    decoded,
)

__all__ = ["Scanned", "scan_python"]

TIMES: Final = {b"ts": "ts", b"dur": "dur"}
TEXTS: Final = {b"cat": "category", b"name": "name", b"pid": "pid", b"tid": "tid"}
FLOW_PHASES: Final = frozenset(b"stf")
LITERALS: Final = {b"true": b"1", b"false": b"0"}
CODES: Final = {"int": "q", "float": "d", "text": "i"}


class Scanned(NamedTuple):
    """What a scanner returns.

    Attributes:
        columns: what the file has.
        has_list: whether it has a key `traceEvents`.
    """

    columns: Columns
    has_list: bool


class _Event:
    """What has been read of the event at hand."""

    def __init__(self) -> None:
        self.empty = True
        self.phase = 0
        self.flow = ABSENT
        self.times = {"ts": ABSENT, "dur": ABSENT}
        self.texts = {"category": -1, "name": -1, "pid": -1, "tid": -1}
        self.arguments: dict[bytes, float] = {}


class _Scan:
    def __init__(self, data: bytes, keys: Mapping[str, str]) -> None:
        self.data = data
        self.parser = Parser(data)
        self.kinds = {key.encode(): kind for key, kind in keys.items()}
        self.has_list = False
        self.bare_list = self.truncated = False
        self.interned: dict[str, int] = {}
        self.top: dict[str, str] = {}
        self.phase, self.offset, self.flow = array("B"), array("q"), array("q")
        self.times = {name: array("q") for name in ("ts", "dur")}
        self.texts = {name: array("i") for name in ("category", "name", "pid", "tid")}
        self.arguments = {key: (array("i"), array(CODES[kind])) for key, kind in self.kinds.items()}

    def run(self) -> None:
        """Read the file, as far as it goes."""
        i = len(codecs.BOM_UTF8) if self.data.startswith(codecs.BOM_UTF8) else 0
        try:
            i = self.parser.blank(i)
            if self.data[i] == OPEN_LIST:
                self.bare_list = True
                self.events(i + 1)
            elif self.data[i] == OPEN:
                self.object(i + 1)
        except Cut:
            self.truncated = True

    # The object around

    def object(self, i: int) -> None:
        """Read the top level from behind its brace."""
        first = True
        while True:
            before = self.parser.attempt(None)
            try:
                opens, i = self.member(i, first)
            except Cut:
                self.parser.repairs = before
                raise
            except Broken:
                self.parser.repairs = before
                opens, i = True, self.events_behind(i)
            if i < 0:
                return
            if opens:
                i = self.events(i)
            first = False

    def events_behind(self, i: int) -> int:
        """Return where events go on behind damage at the top level, which may have been one of theirs."""
        behind = -1 if self.has_list else find_events(self.data, i)
        if behind >= 0:
            self.has_list = True
            return behind
        start = find_start(self.data, i)
        if start < 0:
            raise Cut
        self.parser.repairs.damaged_events += 1
        return start

    def member(self, i: int, first: bool) -> tuple[bool, int]:
        """Read a key of the top level and its value; return the place behind, -1 behind the object's end.

        Of the list of events only its bracket is read; then the first thing returned is True.
        """
        parser = self.parser
        i = parser.separate(i, CLOSE, first)
        if self.data[i] == CLOSE:
            return False, -1
        raw, i = parser.key(i)
        is_list = raw == b"traceEvents"
        if is_list and self.data[i] == OPEN_LIST:
            self.has_list = True
            return True, i + 1
        out: list[str] = []
        i = parser.value(i, IN_OBJECT, out)
        if self.data[parser.blank(i)] not in b",}":
            raise Broken
        if is_list:
            self.has_list = True
        else:
            self.top[decoded(raw)] = "".join(out)
        return False, i

    # The list of events

    def events(self, i: int) -> int:
        """Read the events from behind the list's bracket; return the place behind the list."""
        first, ended = True, False
        while not ended:
            before = self.parser.attempt(None)
            try:
                ended, i = self.element(i, first)
            except Cut:
                self.parser.repairs = before
                raise
            first = False
        return i

    def element(self, i: int, first: bool) -> tuple[bool, int]:
        """Read an element of the list, or its end; return whether it was that, and the place behind."""
        parser, data = self.parser, self.data
        match = BLANK_AND_COMMAS.match(data, i)
        if match is None or match.end() == len(data):
            raise Cut
        commas, here = match[0].count(b","), match.end()
        before = replace(parser.repairs)
        if first or data[here] == CLOSE_LIST:
            parser.repairs.stray_commas += commas
        else:
            parser.repairs.stray_commas += max(commas - 1, 0)
        if data[here] == CLOSE_LIST:
            return True, here + 1
        if data[here] == OPEN:
            return False, self.event(here)
        try:
            after = self.no_event(here)
        except Broken:
            parser.repairs = before
            after = find_start(data, here)
            if after < 0:
                return True, i  # the list's bracket is missing
        parser.repairs.damaged_events += 1
        return False, after

    def no_event(self, i: int) -> int:
        """Go over an element that is no object."""
        i = self.parser.value(i, IN_LIST)
        if self.data[self.parser.blank(i)] not in b",]":
            raise Broken
        return i

    def event(self, start: int) -> int:
        """Read an event; return where to go on: behind it, or behind as much as is damaged."""
        parser, cut = self.parser, False
        before = parser.attempt(None)
        try:
            return self.fields(start)
        except Cut:
            cut = True
        except Broken:
            pass
        parser.repairs = before
        following = find_start(self.data, start + 1)
        if following < 0 and cut:
            raise Cut
        if following < 0:
            following = find_end(self.data, start)
        before = parser.attempt(len(self.data) if following < 0 else following)
        try:
            return self.fields(start)
        except (Cut, Broken):
            parser.repairs = before
        if following < 0:
            raise Cut
        parser.repairs.damaged_events += 1
        return following

    def fields(self, start: int) -> int:
        """Read an event's keys and append it to the columns; return the place behind."""
        parser, event = self.parser, _Event()
        i = parser.separate(start + 1, CLOSE, True)
        while self.data[i] != CLOSE:
            event.empty = False
            key, i = parser.key(i)
            i = self.field(event, key, i)
            i = parser.separate(i, CLOSE, False)
        if not event.empty:
            self.append(event, start)
        return i + 1

    def field(self, event: _Event, key: bytes, i: int) -> int:
        if key in TIMES:
            time, i = self.number(i, nanoseconds)
            event.times[TIMES[key]] = ABSENT if time is None else int(time)
        elif key in TEXTS:
            text, i = self.text(i)
            event.texts[TEXTS[key]] = -1 if text is None else text
        elif key == b"ph":
            event.phase = 0
            if self.data[i] == QUOTE:
                raw, i = self.parser.string(i, IN_OBJECT)
                event.phase = raw[0] if raw else 0
            else:
                i = self.parser.value(i, IN_OBJECT)
        elif key == b"id":
            flow, i = self.number(i, integer)
            event.flow = ABSENT if flow is None else int(flow)
        elif key == b"args":
            event.arguments = {}
            i = self.all_arguments(event, i) if self.data[i] == OPEN else self.parser.value(i, IN_OBJECT)
        else:
            i = self.parser.value(i, IN_OBJECT)
        return i

    def all_arguments(self, event: _Event, i: int) -> int:
        parser = self.parser
        i = parser.separate(i + 1, CLOSE, True)
        while self.data[i] != CLOSE:
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
        """Read a number, in quotes or not; None where it is none.

        A time that is neither a number nor null is counted; other keys may well hold texts.
        """
        parser, good = self.parser, True
        if self.data[i] == QUOTE:
            raw, i = parser.string(i, IN_OBJECT)
        elif self.data[i] in (OPEN, OPEN_LIST):
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
        if self.data[i] == QUOTE:
            raw, i = parser.string(i, IN_OBJECT)
            return self.intern(decoded(raw)), i
        if self.data[i] in (OPEN, OPEN_LIST):
            out: list[str] = []
            i = parser.value(i, IN_OBJECT, out)
            return self.intern("".join(out)), i
        raw, i = parser.word(i, IN_OBJECT)
        if not parser.is_json(raw) or raw == b"null":
            return None, i
        return self.intern(raw.decode()), i

    # What is left of it

    def intern(self, text: str) -> int:
        return self.interned.setdefault(text, len(self.interned))

    def append(self, event: _Event, start: int) -> None:
        row = len(self.phase)
        self.phase.append(event.phase)
        self.offset.append(start)
        self.flow.append(event.flow if event.phase in FLOW_PHASES else ABSENT)
        for name, time in event.times.items():
            self.times[name].append(time)
        for name, index in event.texts.items():
            self.texts[name].append(index)
        for key, value in event.arguments.items():
            rows, values = self.arguments[key]
            rows.append(row)
            values.append(value)  # type: ignore[arg-type]

    def columns(self) -> Columns:
        repairs = self.parser.repairs
        repairs.bare_list, repairs.truncated = self.bare_list, self.truncated
        arguments = {
            key.decode(): Argument(np.array(rows, np.int32), np.array(values))
            for key, (rows, values) in self.arguments.items()
        }
        return Columns(
            phase=np.array(self.phase, np.uint8),
            ts=np.array(self.times["ts"], np.int64),
            dur=np.array(self.times["dur"], np.int64),
            category=np.array(self.texts["category"], np.int32),
            name=np.array(self.texts["name"], np.int32),
            pid=np.array(self.texts["pid"], np.int32),
            tid=np.array(self.texts["tid"], np.int32),
            flow=np.array(self.flow, np.int64),
            offset=np.array(self.offset, np.int64),
            arguments=arguments,
            texts=list(self.interned),
            top=self.top,
            size=len(self.data),
            repairs=repairs,
        )


def scan_python(chunks: Iterable[bytes], keys: Mapping[str, str]) -> Scanned:
    """Read a trace file.

    Args:
        chunks: its bytes, decompressed.
        keys: the arguments to keep, and as what: "int", "float" or "text".

    Returns:
        The columns, and whether there was a list of events at all.
    """
    scan = _Scan(b"".join(chunks), keys)
    scan.run()
    return Scanned(scan.columns(), scan.has_list)
