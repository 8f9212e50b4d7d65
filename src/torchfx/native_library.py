"""Finds and loads the native library (csrc); each half of the package declares the functions it calls."""

from __future__ import annotations

import ctypes
import os
import sys
from importlib import resources
from typing import Final

from torchfx.errors import TorchFXError

__all__ = ["ABI_VERSION", "library", "why_missing"]

ABI_VERSION: Final = 4
"""Of csrc/torchfx.h."""

NAMES: Final = {"win32": "torchfx_native.dll", "darwin": "libtorchfx_native.dylib"}


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
    return found, ""


library, why_missing = _load()
