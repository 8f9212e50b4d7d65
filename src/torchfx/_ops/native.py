"""The native operators through their C interface; without the library, `library` is None and references run."""

from __future__ import annotations

import ctypes
import struct
from typing import Final

from torchfx.native_library import library, why_missing

__all__ = ["instruction_set", "library", "pack13", "pack14", "pack15", "pack20", "why_missing"]

_int32, _int64, _pointer = ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p
_SIGNAL: Final = [_int32, _pointer, _int64, _int64, _pointer, _int64, _int64, _int64]
SIGNATURES: Final = {
    "torchfx_sos_forward": [*_SIGNAL, _pointer, _int64, _pointer, _pointer, _int64, _int32],
    "torchfx_sos_forward_packed": [ctypes.c_char_p],
    "torchfx_fir_forward_packed": [ctypes.c_char_p],
    "torchfx_sos_forward_recording_packed": [ctypes.c_char_p],
    "torchfx_sos_backward_packed": [ctypes.c_char_p],
    "torchfx_fir_backward_x": [
        *(_int32, _pointer, _int64, _int64, _pointer, _int64, _int64, _pointer, _int64),
        *(_pointer, _int64, _pointer, _int32),
    ],
    "torchfx_fir_backward_taps": [
        *(_int32, _pointer, _int64, _int64, _pointer, _pointer, _int64, _int64, _int64, _int64),
        *(_pointer, _int64, _int32),
    ],
    "torchfx_lti_forward": [
        *(*_SIGNAL, _pointer, _int64, _pointer, _pointer, _pointer, _int64, _pointer, _pointer, _int64, _int32)
    ],
    "torchfx_advise_huge_pages": [_pointer, _int64],
}


pack13, pack14, pack15, pack20 = (struct.Struct(f"{count}q").pack for count in (13, 14, 15, 20))
"""Arguments of the `_packed` functions, as bytes; 0 is a null pointer."""


def _declare(found: ctypes.CDLL) -> None:
    for name, arguments in SIGNATURES.items():
        getattr(found, name).argtypes = arguments
        getattr(found, name).restype = _int32
    found.torchfx_isa.restype = ctypes.c_char_p


if library is not None:
    _declare(library)


def instruction_set() -> str:
    """Return the instruction set the native kernels run with, or "none" without a native library."""
    if library is None:
        return "none"
    name: bytes = library.torchfx_isa()
    return name.decode()
