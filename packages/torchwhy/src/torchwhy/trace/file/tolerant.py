"""JSON as trace files have it: strings, values and the damage in both. The specification of the native scanner's half.

A value is read twice at most. First as JSON with harmless faults (stray commas, bare words for numbers, control
characters). Where that breaks, once more between two given places, guessing which quotes end a string.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from torchwhy.trace.file.columns import Repairs
from torchwhy.trace.file.decimals import NUMBER
from torchwhy.trace.file.limits import LIMITS, Excess

__all__ = ["BLANK", "COMMA", "IN_KEY", "IN_LIST", "IN_OBJECT", "Broken", "Cut", "Parser", "decoded", "quoted"]

BLANK: Final = re.compile(rb"[\x00-\x20]*")
BLANK_AND_COMMAS: Final = re.compile(rb"[\x00-\x20,]*")
PLAIN: Final = re.compile(rb'"([^"\\]*)"')
QUOTE_OR_BACKSLASH: Final = re.compile(rb'["\\]')
WORD: Final = re.compile(rb'[^\x00-\x20,:"{}\[\]\x7f-\xff]+')
CONTROL: Final = re.compile(rb"[\x00-\x1f]")
ESCAPE: Final = re.compile(
    rb'\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(["\\/bfnrt]))'
)
SHORT: Final = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}
TO_ESCAPE: Final = re.compile(r'[\x00-\x1f"\\]')
VALUE_STARTS: Final = frozenset(b'"-0123456789{[tfnNI')

IN_KEY, IN_OBJECT, IN_LIST = 0, 1, 2
"""The place of a string: a key, a value in an object, or a value in a list."""

LONGEST_KEY: Final = 256
"""A guessed key is not longer."""

COMMA, COLON, QUOTE, OPEN, CLOSE, OPEN_LIST, CLOSE_LIST = b',:"{}[]'


class Broken(Exception):  # noqa: N818 -- caught where it is raised for; no one outside sees it
    """This is not JSON, even generously read."""


class Cut(Exception):  # noqa: N818
    """The bytes at hand end here."""


def decoded(raw: bytes) -> str:
    """Return what is meant by the bytes between two quotes; an escape that JSON doesn't know stays as it is."""
    if b"\\" in raw:
        raw = ESCAPE.sub(_unescape, raw)
    return raw.decode("utf-8", "replace")


def _unescape(match: re.Match[bytes]) -> bytes:
    high, low, unit, short = match.groups()
    if high is not None:
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00).encode()
    if unit is not None:
        return (
            chr(int(unit, 16)).encode("utf-8", "replace") if not 0xD800 <= int(unit, 16) < 0xE000 else "\ufffd".encode()
        )
    return SHORT.get(short, short)


def quoted(text: str) -> str:
    """Return a text as JSON has it."""
    return (
        '"'
        + TO_ESCAPE.sub(lambda match: "\\" + match[0] if match[0] in '"\\' else f"\\u{ord(match[0]):04x}", text)
        + '"'
    )


class Parser:
    """Reads values out of `data`, counting in `repairs` what was wrong with them.

    Attributes:
        size: where the bytes at hand end.
        end: reading stops in front of this place.
        guess: whether quotes inside strings are guessed at.
        depth: lists and objects inside each other, at most; beyond it `Excess` is raised.
    """

    def __init__(self, data: bytes = b"", depth: int = LIMITS.depth) -> None:
        self.repairs = Repairs()
        self.depth = depth
        self.show(data, len(data))

    def show(self, data: bytes, size: int) -> None:
        """Read in the first `size` bytes of `data` from now on."""
        self.data, self.size = data, size
        self.attempt(None)

    def attempt(self, end: int | None) -> Repairs:
        """Begin to read once more, guessing up to `end`, or plainly (None); return the counts to go back to."""
        self.guess = end is not None
        self.end = self.size if end is None else end
        return replace(self.repairs)

    def stop(self) -> Exception:
        """Return what to raise where reading came to the end."""
        return Cut() if self.end == self.size else Broken()

    def blank(self, i: int) -> int:
        """Skip white space; return the place of the next byte, which exists."""
        match = BLANK.match(self.data, i, self.end)
        if match is None or match.end() >= self.end:
            raise self.stop()
        return match.end()

    def separate(self, i: int, closer: int, first: bool) -> int:
        """Go over the commas to the next element or to `closer`, counting those too many."""
        match = BLANK_AND_COMMAS.match(self.data, i, self.end)
        if match is None or match.end() >= self.end:
            raise self.stop()
        commas, i = match[0].count(b","), match.end()
        if first or self.data[i] == closer:
            self.repairs.stray_commas += commas
        elif commas == 0:
            raise Broken
        else:
            self.repairs.stray_commas += commas - 1
        return i

    def string(self, i: int, where: int) -> tuple[bytes, int]:
        """Return the bytes between the quotes, as they are, and the place after; `i` is that of the first quote."""
        if not self.guess:
            match = PLAIN.match(self.data, i, self.end)
            if match is not None:
                return self._noted(match[1]), match.end()
        j, inside = i + 1, 0
        while True:
            match = QUOTE_OR_BACKSLASH.search(self.data, j, self.end)
            if match is None:
                raise self.stop()
            j = match.start()
            escaped = self.data[j] != QUOTE
            if escaped:
                j += 1
                if j >= self.end:
                    raise self.stop()
            if self.data[j] == QUOTE:
                if not escaped and not self.guess:
                    break
                if self.guess and self._closes(j, where):
                    inside += escaped
                    break
                inside += not escaped
            j += 1
        self.repairs.unescaped_quotes += inside
        return self._noted(self.data[i + 1 : j]), j + 1

    def _noted(self, raw: bytes) -> bytes:
        if CONTROL.search(raw):
            self.repairs.control_characters += 1
        if not raw.isascii():
            try:
                raw.decode()
            except UnicodeDecodeError:
                self.repairs.invalid_utf8 += 1
        return raw

    def _closes(self, quote: int, where: int) -> bool:
        """Whether a string plausibly ends with this quote: what follows must go on like the object or list around."""
        data, end = self.data, self.end
        i = _skip(BLANK, data, quote + 1, end)
        if i >= end:
            return True
        if where == IN_KEY:
            return data[i] == COLON
        if data[i] == COMMA:
            i = _skip(BLANK_AND_COMMAS, data, i, end)
            if i >= end:
                return True
            if where == IN_LIST:
                return data[i] in VALUE_STARTS
            if data[i] == QUOTE:
                i = data.find(b'"', i + 1, min(end, i + 1 + LONGEST_KEY))
                if i < 0:
                    return False
                i = _skip(BLANK, data, i + 1, end)
                return i >= end or data[i] == COLON
            return data[i] == CLOSE
        if data[i] != (CLOSE_LIST if where == IN_LIST else CLOSE):
            return False
        i = _skip(BLANK, data, i + 1, end)
        return i >= end or data[i] in b",}]"

    def key(self, i: int) -> tuple[bytes, int]:
        """Return a key's bytes and the place of its value."""
        if self.data[i] != QUOTE:
            raise Broken
        raw, i = self.string(i, IN_KEY)
        i = self.blank(i)
        if self.data[i] != COLON:
            raise Broken
        return raw, self.blank(i + 1)

    def word(self, i: int, where: int) -> tuple[bytes, int]:
        """Return a number or another bare word, and the place after; empty where an object lacks a value."""
        match = WORD.match(self.data, i, self.end)
        if match is None:
            if where == IN_OBJECT and self.data[i] in b",}":
                return b"", i
            raise Broken
        if match.end() >= self.end:
            raise self.stop()
        return match[0], match.end()

    def value(self, i: int, where: int, out: list[str] | None = None) -> int:
        """Go over a value; return the place after. With `out`, write it there, as proper JSON."""
        closers: list[int] = []
        while True:
            c = self.data[i]
            inner = (IN_OBJECT if closers[-1] == CLOSE else IN_LIST) if closers else where
            opened = c in (OPEN, OPEN_LIST)
            if opened:
                closers.append(CLOSE if c == OPEN else CLOSE_LIST)
                if len(closers) > self.depth:
                    raise Excess("depth", len(closers))
                if out is not None:
                    out.append(chr(c))
                i += 1
            elif c == QUOTE:
                raw, i = self.string(i, inner)
                if out is not None:
                    out.append(quoted(decoded(raw)))
            else:
                raw, i = self.word(i, inner)
                good = self.is_json(raw)
                if out is not None:
                    out.append(raw.decode() if good else "null")
            while closers:
                i = self.separate(i, closers[-1], opened)
                if self.data[i] != closers[-1]:
                    if out is not None and not opened:
                        out.append(",")
                    if closers[-1] == CLOSE:
                        raw, i = self.key(i)
                        if out is not None:
                            out.append(quoted(decoded(raw)) + ":")
                    break
                if out is not None:
                    out.append(chr(closers[-1]))
                closers.pop()
                opened = False
                i += 1
            else:
                return i

    def is_json(self, word: bytes) -> bool:
        """Whether a bare word is a number or literal of JSON; others are counted."""
        good = word in (b"true", b"false", b"null") or NUMBER.match(word) is not None
        self.repairs.not_numbers += not good
        return good


def _skip(what: re.Pattern[bytes], data: bytes, i: int, end: int) -> int:
    match = what.match(data, i, end)
    return i if match is None else match.end()
