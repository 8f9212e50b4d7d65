"""The scanner in plain Python: slow, holds the whole file, and says what the native one has to do, to the bit."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from torchfx.profiler.trace.file.columns import Columns
from torchfx.profiler.trace.file.event_reader import EventReader
from torchfx.profiler.trace.file.growing import GrowingColumns
from torchfx.profiler.trace.file.recovery import find_end, find_events, find_start
from torchfx.profiler.trace.file.tolerant import (
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
    """What a scanner returns.

    Attributes:
        columns: what the file has.
        has_list: whether it has a key `traceEvents`.
    """

    columns: Columns
    has_list: bool


class _Scan:
    def __init__(self, data: bytes, keys: Mapping[str, str]) -> None:
        self.data = data
        self.parser = Parser(data)
        kinds = {key.encode(): kind for key, kind in keys.items()}
        self.has_list = False
        self.bare_list = self.truncated = False
        self.top: dict[str, str] = {}
        self.rows = GrowingColumns(kinds)
        self.reader = EventReader(self.parser, self.rows, kinds)

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
            return self.reader.read(start)
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
            return self.reader.read(start)
        except (Cut, Broken):
            parser.repairs = before
        if following < 0:
            raise Cut
        parser.repairs.damaged_events += 1
        return following


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
    repairs = scan.parser.repairs
    repairs.bare_list, repairs.truncated = scan.bare_list, scan.truncated
    return Scanned(scan.rows.columns(scan.top, len(scan.data), repairs), scan.has_list)
