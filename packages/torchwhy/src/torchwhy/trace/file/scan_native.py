"""The scanner in csrc, through ctypes: the columns are its own memory, never copied."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from torchwhy.native_library import load
from torchwhy.trace.file.columns import Argument, Columns, Repairs
from torchwhy.trace.file.limits import LIMITS, Excess, Limits
from torchwhy.trace.file.scan_python import Scanned

__all__ = ["available", "library", "missing", "scan_native"]

_int32, _int64, _pointer = ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p
SIGNATURES: Final = {
    "torchwhy_trace_new": (_pointer, [_pointer, _pointer, _int64, _pointer]),
    "torchwhy_trace_feed": (_int32, [_pointer, ctypes.c_char_p, _int64]),
    "torchwhy_trace_finish": (_int32, [_pointer]),
    "torchwhy_trace_excess": (None, [_pointer, _pointer]),
    "torchwhy_trace_take": (_int32, [_pointer, _int32, _int64, _pointer, _pointer]),
    "torchwhy_trace_release": (None, [_pointer]),
    "torchwhy_trace_free": (None, [_pointer]),
}

UINT8, INT32, INT64, FLOAT64 = (np.dtype(kind).str for kind in (np.uint8, np.int32, np.int64, np.float64))

KINDS: Final = {"int": 0, "float": 1, "text": 2}
VALUES: Final = {"int": INT64, "float": FLOAT64, "text": INT32}
COLUMNS: Final = {
    "phase": (0, UINT8),
    "ts": (1, INT64),
    "dur": (2, INT64),
    "flow": (3, INT64),
    "offset": (4, INT64),
    "category": (5, INT32),
    "name": (6, INT32),
    "pid": (7, INT32),
    "tid": (8, INT32),
}
TOO_LARGE: Final = 5
ROWS, ARGUMENT_VALUES, TEXTS, TEXT_ENDS, TOP, TOP_ENDS, SUMMARY = range(9, 16)


def _declare(found: ctypes.CDLL) -> None:
    for name, (result, arguments) in SIGNATURES.items():
        getattr(found, name).argtypes = arguments
        getattr(found, name).restype = result


library, missing = load("torchwhy_trace", abi_version=3)  # csrc/torchwhy_trace.h
if library is not None:
    _declare(library)


def available() -> bool:
    """Return whether there is a native scanner."""
    return library is not None


class _Memory:
    """A block of the library's memory that an array stands on; released with the last such array."""

    def __init__(self, found: ctypes.CDLL, address: int, size: int, dtype: str) -> None:
        self._release, self._address = found.torchwhy_trace_release, address
        self.__array_interface__ = {
            "version": 3,
            "typestr": dtype,
            "shape": (size // np.dtype(dtype).itemsize,),
            "data": (address, False),
        }

    def __del__(self) -> None:
        self._release(self._address)


class _Scanner:
    def __init__(self, found: ctypes.CDLL, keys: Mapping[str, str], limits: Limits) -> None:
        self.library = found
        names = (ctypes.c_char_p * len(keys))(*(key.encode() for key in keys))
        kinds = (_int32 * len(keys))(*(KINDS[kind] for kind in keys.values()))
        self.handle = found.torchwhy_trace_new(names, kinds, len(keys), (_int64 * len(limits))(*limits))
        if not self.handle:
            raise MemoryError

    def __enter__(self) -> _Scanner:
        return self

    def __exit__(self, *_: object) -> None:
        self.library.torchwhy_trace_free(self.handle)

    def feed(self, chunk: bytes) -> None:
        self._check(self.library.torchwhy_trace_feed(self.handle, chunk, len(chunk)))

    def finish(self) -> None:
        self._check(self.library.torchwhy_trace_finish(self.handle))

    def take(self, column: int, dtype: str, argument: int = 0) -> npt.NDArray[Any]:
        data, size = _pointer(), _int64()
        self._check(
            self.library.torchwhy_trace_take(self.handle, column, argument, ctypes.byref(data), ctypes.byref(size))
        )
        if not data.value:
            return np.empty(0, dtype)
        return np.asarray(_Memory(self.library, data.value, size.value, dtype))

    def take_texts(self, column: int, ends: int) -> list[str]:
        data = self.take(column, UINT8).data
        texts, start = [], 0
        for end in self.take(ends, INT64).tolist():
            texts.append(str(data[start:end], "utf-8"))
            start = end
        return texts

    def _check(self, status: int) -> None:
        if status == TOO_LARGE:
            found = (_int64 * 3)()
            self.library.torchwhy_trace_excess(self.handle, found)
            limit, value, place = found
            raise Excess(Limits._fields[limit], value, place)
        if status:
            raise MemoryError


def scan_native(chunks: Iterable[bytes], keys: Mapping[str, str], limits: Limits = LIMITS) -> Scanned:
    """Read a trace file, with the arguments, result and errors of `scan_python`."""
    if library is None:
        raise RuntimeError("there is no native scanner")
    with _Scanner(library, keys, limits) as scanner:
        for chunk in chunks:
            scanner.feed(chunk)
        scanner.finish()
        controls, utf8, quotes, not_numbers, commas, damaged, truncated, bare_list, has_list, size = scanner.take(
            SUMMARY, INT64
        ).tolist()
        top = scanner.take_texts(TOP, TOP_ENDS)
        columns = Columns(
            **{name: scanner.take(column, dtype) for name, (column, dtype) in COLUMNS.items()},
            arguments={
                key: Argument(scanner.take(ROWS, INT32, i), scanner.take(ARGUMENT_VALUES, VALUES[kind], i))
                for i, (key, kind) in enumerate(keys.items())
            },
            texts=scanner.take_texts(TEXTS, TEXT_ENDS),
            top=dict(zip(top[::2], top[1::2], strict=True)),
            size=size,
            repairs=Repairs(
                control_characters=controls,
                invalid_utf8=utf8,
                unescaped_quotes=quotes,
                not_numbers=not_numbers,
                stray_commas=commas,
                damaged_events=damaged,
                truncated=bool(truncated),
                bare_list=bool(bare_list),
            ),
        )
    return Scanned(columns, bool(has_list))
