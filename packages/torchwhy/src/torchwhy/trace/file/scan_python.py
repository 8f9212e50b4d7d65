"""The scanner in plain Python: slow, and says what the native one has to do, to the bit."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from torchwhy.trace.file.columns import Columns
from torchwhy.trace.file.event_reader import EventReader
from torchwhy.trace.file.growing import GrowingColumns
from torchwhy.trace.file.limits import LIMITS, Excess, Limits
from torchwhy.trace.file.recovery import find_end, find_events, find_start
from torchwhy.trace.file.tolerant import (
    BLANK_AND_COMMAS,
    CLOSE,
    CLOSE_LIST,
    IN_LIST,
    IN_OBJECT,
    OPEN,
    OPEN_LIST,
    Broken,
    Cut,
    Parser,
    decoded,
)

__all__ = ["Scanned", "scan_python"]


class Scanned(NamedTuple):
    """The result of a scanner.

    Attributes:
        columns: what the file has.
        has_list: whether it has a key `traceEvents` with a list, or null.
    """

    columns: Columns
    has_list: bool


class _Scan:
    """Reads a file fed in pieces, step by step: an event, or a key of the top level with its value.

    A step that meets the end of the bytes at hand is begun again when there are more. No step looks further than
    `limits.element` bytes, so what it finds does not depend on the pieces.
    """

    def __init__(self, keys: Mapping[str, str], limits: Limits) -> None:
        self.limits = limits
        self.parser = Parser(depth=limits.depth)
        kinds = {key.encode(): kind for key, kind in keys.items()}
        self.has_list = self.bare_list = self.truncated = False
        self.top: dict[str, str] = {}
        self.top_bytes = 0
        self.rows = GrowingColumns(kinds, limits)
        self.reader = EventReader(self.parser, self.rows, kinds)
        self.data = b""
        self.place = 0  # where in the data the next step begins
        self.wanted = 0  # not before there are this many bytes
        self.size = 0  # of the file
        self.first = True  # nothing of the object or list has been read yet
        self.final = False  # the file ends with the data
        self.step: Callable[[], None] | None = self.begin

    def feed(self, chunk: bytes) -> None:
        """Read on; also after the end of the JSON, where bytes only count."""
        self.size += len(chunk)
        if self.step is None:
            return
        self.data = self.data[self.place :] + chunk
        self.reader.before += self.place
        self.wanted -= self.place
        self.place = 0
        if len(self.data) >= self.wanted:
            self.run()

    def finish(self) -> None:
        """Read what is left: the file has ended."""
        self.final = True
        self.run()

    def run(self) -> None:
        """Read until the data end."""
        parser = self.parser
        while self.step is not None:
            parser.show(self.data, min(len(self.data), self.place + self.limits.element))
            before = parser.attempt(None)
            try:
                self.step()
            except Cut:
                parser.repairs = before
                if parser.size < len(self.data):
                    raise self.excess(Excess("element", self.limits.element + 1)) from None
                if self.final:
                    self.truncated, self.step = True, None
                # Begun again at every byte, a long value would be read a thousand times.
                self.wanted = min(2 * len(self.data) - self.place, self.place + self.limits.element + 1)
                return
            except Excess as error:
                raise self.excess(error) from None

    def excess(self, found: Excess) -> Excess:
        """Say where it is."""
        return Excess(found.limit, found.value, self.reader.before + self.place)

    @property
    def whole(self) -> bool:
        """Whether the step at hand sees all that is left of the file."""
        return self.final and self.parser.size == len(self.data)

    def begin(self) -> None:
        """Read the first bracket."""
        mark = codecs.BOM_UTF8
        if len(self.data) < len(mark) and not self.final:
            raise Cut
        i = self.parser.blank(len(mark) if self.data.startswith(mark) else 0)
        self.bare_list = self.data[i] == OPEN_LIST
        self.step = self.events if self.bare_list else self.object if self.data[i] == OPEN else None
        self.place = i + 1

    # The object around

    def object(self) -> None:
        """Read a key of the top level and its value; after damage there, go on with events."""
        parser = self.parser
        before = parser.attempt(None)
        try:
            return self.member()
        except Broken:
            parser.repairs = before
        # The damage may have been one of the events'.
        found = -1 if self.has_list else find_events(self.data, self.place, parser.size)
        if found >= 0:
            self.has_list = True
        else:
            if not self.has_list and not self.whole:
                raise Cut
            found = find_start(self.data, self.place, parser.size)
            if found < 0:
                raise Cut
            parser.repairs.damaged_events += 1
        self.place, self.first, self.step = found, True, self.events
        return None

    def member(self) -> None:
        """Read a key of the top level and its value; of the list of events only its bracket."""
        parser = self.parser
        i = parser.separate(self.place, CLOSE, self.first)
        if self.data[i] == CLOSE:
            self.step = None
            return
        raw, i = parser.key(i)
        is_list = raw == b"traceEvents"
        if is_list and self.data[i] == OPEN_LIST:
            self.has_list = self.first = True
            self.place, self.step = i + 1, self.events
            return
        out: list[str] = []
        i = parser.value(i, IN_OBJECT, out)
        if self.data[parser.blank(i)] not in b",}":
            raise Broken
        if is_list:
            self.has_list = "".join(out) == "null"
        else:
            name, value = decoded(raw), "".join(out)
            self.top_bytes += len(name.encode()) + len(value.encode())
            if self.top_bytes > self.limits.top:
                raise Excess("top", self.top_bytes)
            self.top[name] = value
        self.place, self.first = i, False

    # The list of events

    def events(self) -> None:
        """Read an element of the list, or its end."""
        parser, data = self.parser, self.data
        match = BLANK_AND_COMMAS.match(data, self.place, parser.size)
        if match is None or match.end() == parser.size:
            raise Cut
        commas, here = match[0].count(b","), match.end()
        before = replace(parser.repairs)
        outside = None if self.bare_list else self.object
        ends = data[here] == CLOSE_LIST
        parser.repairs.stray_commas += commas if self.first or ends else max(commas - 1, 0)
        if ends:
            self.place, self.first, self.step = here + 1, False, outside
            return
        if data[here] == OPEN:
            self.place, self.first = self.event(here), False
            return
        try:
            after = self.no_event(here)
        except Broken:
            parser.repairs = before
            after = find_start(data, here, parser.size)
            if after < 0:
                if not self.whole:
                    raise Cut from None
                self.first, self.step = False, outside  # the list's bracket is missing
                return
        parser.repairs.damaged_events += 1
        self.place, self.first = after, False

    def no_event(self, i: int) -> int:
        """Go over an element that is no object."""
        i = self.parser.value(i, IN_LIST)
        if self.data[self.parser.blank(i)] not in b",]":
            raise Broken
        return i

    def event(self, start: int) -> int:
        """Read an event; return where to go on: after it, or after as much as is damaged."""
        parser, data, cut = self.parser, self.data, False
        before = replace(parser.repairs)
        try:
            return self.reader.read(start)
        except Cut:
            if not self.whole:
                raise
            cut = True
        except Broken:
            pass
        parser.repairs = before
        following = find_start(data, start + 1, parser.size)
        if following < 0 and (cut or not self.whole):
            raise Cut
        if following < 0:
            following = find_end(data, start, parser.size)
        before = parser.attempt(parser.size if following < 0 else following)
        try:
            return self.reader.read(start)
        except (Cut, Broken):
            parser.repairs = before
        if following < 0:
            raise Cut
        parser.repairs.damaged_events += 1
        return following


def scan_python(chunks: Iterable[bytes], keys: Mapping[str, str], limits: Limits = LIMITS) -> Scanned:
    """Read a trace file.

    Args:
        chunks: its bytes, decompressed.
        keys: the arguments to keep, and as what: "int", "float" or "text".
        limits: how large parts of it may be.

    Returns:
        The columns, and whether there was a list of events at all.

    Raises:
        Excess: a part is larger.
    """
    scan = _Scan(keys, limits)
    for chunk in chunks:
        scan.feed(chunk)
    scan.finish()
    repairs = scan.parser.repairs
    repairs.bare_list, repairs.truncated = scan.bare_list, scan.truncated
    return Scanned(scan.rows.columns(scan.top, scan.size, repairs), scan.has_list)
