"""The functions of `nesting` in csrc: arguments and results are the same."""

from __future__ import annotations

import ctypes
from typing import Final

import numpy as np
from numpy.ctypeslib import ndpointer

from torchwhy.trace.file.columns import Flags, Int32, Int64
from torchwhy.trace.file.scan_native import available, library

__all__ = ["around", "available", "inside", "nearest", "parents"]

_flags, _int32, _int64 = (ndpointer(kind, flags="C_CONTIGUOUS") for kind in (np.bool_, np.int32, np.int64))
_rows: Final = (_int32, ctypes.c_int64)
SIGNATURES: Final = {
    "torchwhy_trace_parents": (*_rows, _int32, _int64, _int64, ctypes.c_int64, _int32),
    "torchwhy_trace_nearest": (*_rows, _int32, _flags, _int32),
    "torchwhy_trace_around": (*_rows, _int32, _int32),
    "torchwhy_trace_inside": (*_rows, _int32, _int32),
}

if library is not None:
    for _name, _arguments in SIGNATURES.items():
        getattr(library, _name).argtypes = _arguments
        getattr(library, _name).restype = None


def parents(rows: Int32, lane: Int32, start: Int64, end: Int64, bleed: int) -> Int32:
    """For each event the row of the innermost one around it on its lane, or -1."""
    found = np.full(len(lane), -1, np.int32)
    _call("parents", rows, lane, start, end, bleed, found)
    return found


def nearest(rows: Int32, parent: Int32, wanted: Flags) -> Int32:
    """For each of the rows the innermost wanted event around it, itself included, or -1."""
    found = np.full(len(parent), -1, np.int32)
    _call("nearest", rows, parent, wanted, found)
    return found


def around(rows: Int32, parent: Int32) -> Int32:
    """How many events are around each of the rows; 0 for other events."""
    found = np.zeros(len(parent), np.int32)
    _call("around", rows, parent, found)
    return found


def inside(rows: Int32, parent: Int32) -> Int32:
    """How many events are inside each of the rows, at any depth; 0 for other events."""
    found = np.zeros(len(parent), np.int32)
    _call("inside", rows, parent, found)
    return found


def _call(name: str, rows: Int32, *arguments: object) -> None:
    getattr(library, f"torchwhy_trace_{name}")(rows, len(rows), *arguments)
