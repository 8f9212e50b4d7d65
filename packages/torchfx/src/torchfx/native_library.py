"""Finds and loads the native library (csrc)."""

from __future__ import annotations

import ctypes
import os
import sys
from importlib import resources

from torchfx.errors import TorchFXError

__all__ = ["load"]


def load(name: str, abi_version: int) -> tuple[ctypes.CDLL | None, str]:
    """Return (library, ""), or (None, the reason why it is missing).

    Args:
        name: "torchfx_dsp".
        abi_version: the interface version the caller was written for.

    Raises:
        TorchFXError: the library that was built has another interface version.
    """
    if os.environ.get("TORCHFX_NATIVE", "1") == "0":
        return None, "switched off by TORCHFX_NATIVE=0"
    path = _find(name)
    if path is None:
        return None, "not built: no C++ compiler was found when torchfx was installed, or it failed"
    try:
        found = ctypes.CDLL(os.fspath(path))
    except OSError as error:
        return None, f"cannot be loaded: {error}"
    version = getattr(found, f"{name}_abi_version")()
    if version != abi_version:
        raise TorchFXError(
            f"{path} has interface version {version}, this torchfx needs {abi_version}: install torchfx again"
        )
    return found, ""


def _find(name: str) -> os.PathLike[str] | None:
    # importlib.resources rather than __file__: in an editable install the libraries are not beside the sources.
    file = {"win32": f"{name}.dll", "darwin": f"lib{name}.dylib"}.get(sys.platform, f"lib{name}.so")
    try:
        found = resources.files("torchfx").joinpath(file)
        with resources.as_file(found) as path:
            return path if path.exists() else None
    except FileNotFoundError:
        return None
