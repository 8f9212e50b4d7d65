"""Finds and loads the native library (csrc)."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import warnings
from importlib import resources

__all__ = ["load"]


def load(name: str, abi_version: int) -> tuple[ctypes.CDLL | None, str]:
    """Return (library, ""), or (None, the reason why it is missing).

    One that is there and does not fit is warned of: a damaged file, another processor's, another version's.

    Args:
        name: "torchfx_dsp".
        abi_version: the interface version the caller was written for.
    """
    if os.environ.get("TORCHFX_NATIVE", "1") == "0":
        return None, "switched off by TORCHFX_NATIVE=0"
    path = _find(name)
    if path is None:
        return None, "not built: no C++ compiler was found when torchfx was installed, or it failed"
    try:
        found = _opened(path)
        version = getattr(found, f"{name}_abi_version")()
    except (OSError, AttributeError) as error:
        return None, _warned(f"{path} cannot be loaded: {error}")
    if version != abi_version:
        return None, _warned(f"{path} has interface version {version}, this torchfx needs {abi_version}")
    return found, ""


def _warned(reason: str) -> str:
    warnings.warn(f"{reason}; plain PyTorch computes, more slowly; install torchfx again", RuntimeWarning, stacklevel=1)
    return reason


def _opened(path: os.PathLike[str]) -> ctypes.CDLL:
    """Load a library that is whole: Linux ends the process that loads an ELF file without its end."""
    with open(path, "rb") as file:  # noqa: PTH123
        header = file.read(64)
        size = os.fstat(file.fileno()).st_size
    if header[:5] == b"\x7fELF\2" and len(header) == 64:
        (sections,) = struct.unpack_from("=Q", header, 40)  # where their table begins; it is the last part of the file
        length, count = struct.unpack_from("=HH", header, 58)
        if sections + length * count > size:
            raise OSError(f"the file's end is missing, after {size} bytes")
    return ctypes.CDLL(os.fspath(path))


def _find(name: str) -> os.PathLike[str] | None:
    # importlib.resources rather than __file__: in an editable install the libraries are not beside the sources.
    file = {"win32": f"{name}.dll", "darwin": f"lib{name}.dylib"}.get(sys.platform, f"lib{name}.so")
    try:
        found = resources.files("torchfx").joinpath(file)
        with resources.as_file(found) as path:
            return path if path.exists() else None
    except FileNotFoundError:
        return None
