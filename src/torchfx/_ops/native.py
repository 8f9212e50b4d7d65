"""The native operators through their C interface; without the library, `library` is None and references run."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import Final

from torchfx.native_library import load

__all__ = ["call", "instruction_set", "library", "why_missing"]

library, why_missing = load("torchfx_dsp", abi_version=6)  # csrc/torchfx_dsp.h

CALLS: Final = {
    "sos_forward": 14,
    "sos_forward_recording": 15,
    "sos_backward": 20,
    "fir_forward": 16,
    "fir_backward_x": 15,
    "fir_backward_taps": 16,
    "program_run": 11,
    "advise_huge_pages": 2,
}
"""How many arguments each function of the C interface takes."""


def _packed(found: ctypes.CDLL, name: str, count: int) -> Callable[..., int]:
    function = getattr(found, f"torchfx_{name}_packed")
    function.argtypes, function.restype = [ctypes.c_char_p], ctypes.c_int32
    pack = struct.Struct(f"{1 + count}q").pack

    def call(*arguments: int) -> int:
        status: int = function(pack(count, *arguments))
        return status

    return call


call: Final = {} if library is None else {name: _packed(library, name, count) for name, count in CALLS.items()}
"""The functions by name. They take integers (addresses for pointers, 0 for NULL) and return a status.

The number of arguments goes with them: csrc refuses another one than its function's, as `struct` does here.
"""


def instruction_set() -> str:
    """Return the instruction set the native kernels run with, or "none" without a native library."""
    if library is None:
        return "none"
    library.torchfx_isa.restype = ctypes.c_char_p
    name: bytes = library.torchfx_isa()
    return name.decode()
