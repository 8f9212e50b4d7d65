"""Loads the native library (csrc) through its C interface; without one, `library` is None and references run."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from importlib import resources
from typing import Final

from torchfx.errors import TorchFXError

__all__ = ["instruction_set", "library", "pack13", "pack14", "why_missing"]

ABI_VERSION: Final = 2
NAMES: Final = {"win32": "torchfx_native.dll", "darwin": "libtorchfx_native.dylib"}

_int32, _int64, _pointer = ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p
_SIGNAL: Final = [_int32, _pointer, _int64, _int64, _pointer, _int64, _int64, _int64]
SIGNATURES: Final = {
    "torchfx_sos_forward": [*_SIGNAL, _pointer, _int64, _pointer, _pointer, _int64, _int32],
    "torchfx_sos_forward_packed": [ctypes.c_char_p],
    "torchfx_fir_forward_packed": [ctypes.c_char_p],
    "torchfx_sos_forward_recording": [*_SIGNAL, _pointer, _int64, _pointer, _pointer, _pointer, _int64, _int32],
    "torchfx_sos_backward": [
        *(_int32, _pointer, _int64, _int64, _pointer, _int64, _int64, _int64, _int64),
        *(_pointer, _int64, _pointer, _pointer, _pointer, _pointer, _int64, _pointer, _pointer, _int64, _int32),
    ],
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


pack13, pack14 = struct.Struct("13q").pack, struct.Struct("14q").pack
"""Arguments of the `_packed` functions, as bytes; 0 is a null pointer."""


def _find() -> os.PathLike[str] | None:
    # importlib.resources rather than __file__: in an editable install the library is not beside the sources.
    name = NAMES.get(sys.platform, "libtorchfx_native.so")
    try:
        found = resources.files("torchfx").joinpath(name)
        with resources.as_file(found) as path:
            return path if path.exists() else None
    except FileNotFoundError:
        return None


def _load() -> tuple[ctypes.CDLL | None, str]:
    if os.environ.get("TORCHFX_NATIVE", "1") == "0":
        return None, "switched off by TORCHFX_NATIVE=0"
    path = _find()
    if path is None:
        return None, "not built: no C++ compiler was found when torchfx was installed, or it failed"
    try:
        found = ctypes.CDLL(os.fspath(path))
    except OSError as error:
        return None, f"cannot be loaded: {error}"
    if found.torchfx_abi_version() != ABI_VERSION:
        raise TorchFXError(
            f"{path} has interface version {found.torchfx_abi_version()}, this torchfx needs {ABI_VERSION}: "
            f"install torchfx again"
        )
    for name, arguments in SIGNATURES.items():
        getattr(found, name).argtypes = arguments
        getattr(found, name).restype = _int32
    found.torchfx_isa.restype = ctypes.c_char_p
    return found, ""


library, why_missing = _load()


def instruction_set() -> str:
    """Return the instruction set the native kernels run with, or "none" without a native library."""
    if library is None:
        return "none"
    name: bytes = library.torchfx_isa()
    return name.decode()
