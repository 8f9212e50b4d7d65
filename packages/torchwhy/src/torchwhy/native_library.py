"""Finds and loads the native scanner (csrc)."""

from __future__ import annotations

import ctypes
import os
import sys
from importlib import resources

from torchwhy.errors import TorchWhyError

__all__ = ["load"]


def load(name: str, abi_version: int) -> tuple[ctypes.CDLL | None, str]:
    """Return (library, ""), or (None, the reason why it is missing).

    Args:
        name: "torchwhy_trace".
        abi_version: the interface version the caller was written for.

    Raises:
        TorchWhyError: the library that was built has another interface version.
    """
    if os.environ.get("TORCHWHY_NATIVE", "1") == "0":
        return None, "switched off by TORCHWHY_NATIVE=0"
    path = _find(name)
    if path is None:
        return None, "not built: no C++ compiler was found when torchwhy was installed, or it failed"
    try:
        found = ctypes.CDLL(os.fspath(path))
    except OSError as error:
        return None, f"cannot be loaded: {error}"
    version = getattr(found, f"{name}_abi_version")()
    if version != abi_version:
        raise TorchWhyError(
            f"{path} has interface version {version}, this torchwhy needs {abi_version}: install torchwhy again"
        )
    return found, ""


def _find(name: str) -> os.PathLike[str] | None:
    # importlib.resources rather than __file__: in an editable install the libraries are not beside the sources.
    file = {"win32": f"{name}.dll", "darwin": f"lib{name}.dylib"}.get(sys.platform, f"lib{name}.so")
    try:
        found = resources.files("torchwhy").joinpath(file)
        with resources.as_file(found) as path:
            return path if path.exists() else None
    except FileNotFoundError:
        return None
