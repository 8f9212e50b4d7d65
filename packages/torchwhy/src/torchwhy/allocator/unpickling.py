"""Pickles of plain data: dictionaries, lists, tuples, texts and numbers. Nothing in a file can name code to run.

Python's own reader looks up and calls what a file names. This one knows no instruction that does: not GLOBAL, REDUCE,
BUILD, INST, OBJ, persistent ids or extensions. The format is documented in the standard library's `pickletools`.

A file whose every instruction was found to be one of plain data is left to the interpreter's reader, which is 10 times
as fast; one that has anything else is read here, to say what it is.
"""

from __future__ import annotations

import io
import pickle
import re
import struct
import sys
from typing import Any, Final, NoReturn

__all__ = ["PickleError", "unpickled"]

MOST: Final = 100_000_000
"""Values in a file, at most; each takes about 100 bytes of memory."""

_NOT_DATA: Final = {
    b"c": "GLOBAL", b"\x93": "STACK_GLOBAL", b"R": "REDUCE", b"b": "BUILD", b"i": "INST", b"o": "OBJ",
    b"\x81": "NEWOBJ", b"\x92": "NEWOBJ_EX", b"P": "PERSID", b"Q": "BINPERSID",
    b"\x82": "EXT1", b"\x83": "EXT2", b"\x84": "EXT4",
}  # fmt: skip
_MARK: Final = object()
_KEYS: Final = frozenset({str, int})
"""Allowed types of dictionary keys: the hash of deeply nested tuples would end the process."""


_SHORT: Final = 64
"""Most texts of a file are shorter than this (bytes); a longer text is skipped separately."""


def _of_sizes(code: bytes, most: int, rest: bytes = b"") -> bytes:
    """Instructions whose data follow a byte with their size, and more bytes of it."""
    return code + b"(?:" + b"|".join(re.escape(bytes([n])) + rest + b".{%d}" % n for n in range(most)) + b")"


_KEPT: Final = b"+" if sys.version_info >= (3, 11) else b""
"""Makes a repetition possessive: what matched is not tried again, which takes time to prepare for."""

_INSTRUCTIONS: Final = re.compile(
    rb"(?:[hqK\x80].|[\x94(uesa}\]\x86N\x88\x89]+" + _KEPT + rb"|j.{4}|r.{2}[\x00-\x0f]\x00|M.{2}|J.{4}|[G\x95].{8}|"
    + b"|".join((_of_sizes(rb"X", _SHORT, rb"\x00{3}"), _of_sizes(rb"\x8c", _SHORT), _of_sizes(rb"\x8a", 10)))
    + rb"){0,1000}" + _KEPT,
    re.DOTALL,
)  # fmt: skip
"""Instructions of plain data, but long texts and the end. Places to remember values in are below a million: Python's
reader makes room for all up to the one that is named."""

_PAIR: Final = b"\x86"
_MOST_PAIRS: Final = 20_000
"""PyTorch writes only tuples that are pairs. This number of nested pairs can be hashed on the stack of a thread."""


_AHEAD: Final = 1 << 17
"""Bytes that Python's reader gets at once."""


class PickleError(Exception):
    """The bytes are no pickle of plain data; the message says what they are and where."""


def unpickled(data: bytes) -> Any:
    """Return the value that protocol 2 or later wrote.

    Raises:
        PickleError: the data end early, make no sense, or hold more than plain data.
    """
    if _is_plain(data):
        try:
            # Of a file without `peek`, the reader would ask for every instruction alone.
            return _Plain(io.BufferedReader(io.BytesIO(data), _AHEAD)).load()
        except Exception:  # noqa: BLE001 -- below, the same file gets the error that says where it is wrong
            pass
    return read_here(data)


def read_here(data: bytes) -> Any:
    """Return the value, read instruction by instruction; see `unpickled`."""
    place = [0]
    try:
        return _read(data, place)
    except UnicodeDecodeError:
        raise PickleError(f"a text is not UTF-8 at byte {place[0]:,}") from None
    except (IndexError, KeyError, TypeError, ValueError, struct.error):
        raise PickleError(f"its data make no sense at byte {place[0]:,}") from None


class _Plain(pickle.Unpickler):
    """Python's reader without the means to look anything up; the second lock behind `_is_plain`."""

    def find_class(self, module: str, name: str, /) -> NoReturn:
        raise PickleError(f"it names {module}.{name}")

    def persistent_load(self, pid: Any, /) -> NoReturn:
        raise PickleError("it has persistent ids")


def _is_plain(data: bytes) -> bool:
    """Whether all instructions up to the end are those of plain data, and harmless in number."""
    i, end = 0, len(data)
    while i < end:
        found = _INSTRUCTIONS.match(data, i)
        if found is not None and found.end() > i:
            i = found.end()
            continue
        code = data[i : i + 1]
        if code == b".":
            return data.count(_PAIR) <= _MOST_PAIRS
        form = {b"X": "<I", b"\x8c": "<B"}.get(code)
        if form is None or i + 1 + struct.calcsize(form) > end:
            return False
        i += 1 + struct.calcsize(form) + struct.unpack_from(form, data, i + 1)[0]
    return False


def _read(data: bytes, place: list[int]) -> Any:
    stack: list[Any] = []
    marks: list[int] = []
    memo: dict[int, Any] = {}
    i, values, end = 0, 0, len(data)
    push, unpack = stack.append, struct.unpack_from
    while True:
        place[0] = i
        if i >= end:
            raise PickleError(f"it ends early, at byte {i:,}")
        code = data[i]
        i += 1
        values += 1
        if values > MOST:
            raise PickleError(f"it has more than {MOST:,} values")
        # The most frequent first.
        if code == 0x68:  # BINGET
            push(memo[data[i]])
            i += 1
        elif code == 0x6A:  # LONG_BINGET
            push(memo[unpack("<I", data, i)[0]])
            i += 4
        elif code == 0x94:  # MEMOIZE
            memo[len(memo)] = stack[-1]
        elif code == 0x71:  # BINPUT
            memo[data[i]] = stack[-1]
            i += 1
        elif code == 0x72:  # LONG_BINPUT
            memo[unpack("<I", data, i)[0]] = stack[-1]
            i += 4
        elif code == 0x4B:  # BININT1
            push(data[i])
            i += 1
        elif code == 0x4D:  # BININT2
            push(unpack("<H", data, i)[0])
            i += 2
        elif code == 0x4A:  # BININT
            push(unpack("<i", data, i)[0])
            i += 4
        elif code == 0x8A:  # LONG1
            size = data[i]
            if size > 9:
                raise PickleError(f"an integer at byte {i:,} has {size} bytes, at most 9 are read")
            push(int.from_bytes(_part(data, i + 1, size), "little", signed=True))
            i += 1 + size
        elif code in (0x8C, 0x58, 0x8D):  # SHORT_BINUNICODE, BINUNICODE, BINUNICODE8
            form = {0x8C: "<B", 0x58: "<I", 0x8D: "<Q"}[code]
            size, i = unpack(form, data, i)[0], i + struct.calcsize(form)
            push(str(_part(data, i, size), "utf-8", "surrogatepass"))
            i += size
        elif code in (0x43, 0x42, 0x8E):  # SHORT_BINBYTES, BINBYTES, BINBYTES8
            form = {0x43: "<B", 0x42: "<I", 0x8E: "<Q"}[code]
            size, i = unpack(form, data, i)[0], i + struct.calcsize(form)
            push(_part(data, i, size))
            i += size
        elif code == 0x28:  # MARK
            marks.append(len(stack))
            push(_MARK)
        elif code == 0x75:  # SETITEMS
            start = marks.pop()
            keys = stack[start + 1 :: 2]
            if not _KEYS.issuperset(map(type, keys)):
                raise TypeError
            _of(dict, stack[start - 1]).update(zip(keys, stack[start + 2 :: 2], strict=True))
            del stack[start:]
        elif code == 0x65:  # APPENDS
            start = marks.pop()
            _of(list, stack[start - 1]).extend(stack[start + 1 :])
            del stack[start:]
        elif code == 0x73:  # SETITEM
            value, key = stack.pop(), stack.pop()
            if type(key) not in _KEYS:
                raise TypeError
            _of(dict, stack[-1])[key] = value
        elif code == 0x61:  # APPEND
            value = stack.pop()
            _of(list, stack[-1]).append(value)
        elif code == 0x7D:  # EMPTY_DICT
            push({})
        elif code == 0x5D:  # EMPTY_LIST
            push([])
        elif code == 0x29:  # EMPTY_TUPLE
            push(())
        elif code in (0x85, 0x86, 0x87):  # TUPLE1 to TUPLE3
            count = code - 0x84
            if len(stack) - (marks[-1] + 1 if marks else 0) < count:
                raise IndexError
            stack[-count:] = [tuple(stack[-count:])]
        elif code == 0x74:  # TUPLE
            start = marks.pop()
            stack[start:] = [tuple(stack[start + 1 :])]
        elif code == 0x4E:  # NONE
            push(None)
        elif code in (0x88, 0x89):  # NEWTRUE, NEWFALSE
            push(code == 0x88)
        elif code == 0x47:  # BINFLOAT
            push(unpack(">d", data, i)[0])
            i += 8
        elif code == 0x95:  # FRAME
            i += 8
        elif code == 0x80:  # PROTO
            i += 1
        elif code == 0x2E:  # STOP
            if len(stack) != 1 or marks:
                raise IndexError
            return stack[0]
        else:
            name = _NOT_DATA.get(bytes([code]))
            if name:
                raise PickleError(f"it holds more than plain data: {name} at byte {i - 1:,} would run code")
            raise PickleError(f"the instruction 0x{code:02x} at byte {i - 1:,} isn't one of plain data")


def _of(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise TypeError
    return value


def _part(data: bytes, start: int, size: int) -> bytes:
    if start + size > len(data):
        raise PickleError(f"it ends early, inside a text or number at byte {start:,}")
    return data[start : start + size]
