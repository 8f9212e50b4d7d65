"""The native operators through their C interface; without the library, `library` is None and references run."""

from __future__ import annotations

import ctypes
import struct
from array import array
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from torchfx.native_library import load

__all__ = [
    "Call",
    "call",
    "call_each",
    "instruction_set",
    "library",
    "numbers",
    "program_again",
    "text",
    "why_missing",
]

library, why_missing = load("torchfx_dsp", abi_version=31)  # csrc/torchfx_dsp.h


class Call(NamedTuple):
    """A function of the C interface, `run(pack(...))`, with its arguments as integers: addresses, 0 for NULL.

    The number of arguments goes with them: csrc refuses another one than its function's, as `struct` does here. Two
    functions, since a third one around them would cost as much as both.
    """

    pack: Callable[..., bytes]
    run: Callable[[bytes], int]


def text(name: str) -> str:
    """Return a text of the C interface, such as "step_fields"; "" without a native library."""
    if library is None:
        return ""
    function = getattr(library, f"torchfx_{name}")
    function.restype = ctypes.c_char_p
    found: bytes = function()
    return found.decode()


def numbers(names: str) -> dict[str, int]:
    """Return the numbers of "curve_names" or "packed_names" by name; none without a native library."""
    return {name: number for number, name in enumerate(text(names).split())}


def _call(name: str) -> Call:
    function = getattr(library, f"torchfx_{name}_packed")
    function.argtypes, function.restype = [ctypes.c_char_p], ctypes.c_int32
    count = function(None)
    return Call(partial(struct.Struct(f"{1 + count}q").pack, count), function)


call: Final = {name: _call(name) for name in numbers("packed_names")}
"""The functions by name, as csrc declares them; each returns a status. None without a native library."""


def _program_again() -> Callable[[bytes, int, int, int], int] | None:
    if library is None:
        return None
    function = library.torchfx_program_again
    function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32]
    function.restype = ctypes.c_int32
    found: Callable[[bytes, int, int, int], int] = function
    return found


program_again: Final = _program_again()
"""`torchfx_program_again`: what stays the same from call to call, the addresses of input and output, threads."""


def call_each(name: str, calls: Sequence[bytes], threads: int) -> int:
    """Run packed calls of one function side by side, the first one started first; return 0 or a failure's status."""
    arguments = array("q", b"".join(calls))
    pack, run = call["packed_each"]
    function = ctypes.cast(call[name].run, ctypes.c_void_p).value  # type: ignore[arg-type]
    return run(pack(function, arguments.buffer_info()[0], len(arguments) // len(calls), len(calls), threads))


def instruction_set() -> str:
    """Return the instruction set the native kernels run with, or "none" without a native library."""
    return text("isa") or "none"
