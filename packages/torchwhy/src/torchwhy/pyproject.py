"""Settings in the nearest `pyproject.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from torchwhy.errors import ArgumentError, TorchWhyError
from torchwhy.schema import UNDECODABLE

__all__ = ["SettingsFileError", "find_pyproject", "read_tool_table"]


class SettingsFileError(TorchWhyError, OSError):
    """A settings file cannot be read, or is not TOML."""


def find_pyproject(start: Path) -> Path | None:
    """Return the nearest `pyproject.toml` in `start` or above it."""
    for folder in (start.resolve(), *start.resolve().parents):
        if (folder / "pyproject.toml").is_file():
            return folder / "pyproject.toml"
    return None


def read_tool_table(path: Path, name: str) -> Mapping[str, Any]:
    """Return the table `[tool.torchwhy.NAME]` of a file, or an empty one.

    Raises:
        SettingsFileError: the file cannot be read, or is not TOML.
        ArgumentError: the entry is not a table.
    """
    try:
        content = msgspec.toml.decode(path.read_bytes())
    except FileNotFoundError as error:
        raise SettingsFileError(f"{path} does not exist") from error
    except OSError as error:
        raise SettingsFileError(f"cannot read {path}: {error.strerror or error}") from error
    except UNDECODABLE as error:
        raise SettingsFileError(f"{path} is not TOML: {error}") from error
    found: Any = content
    for key in ("tool", "torchwhy", name):
        found = found.get(key, {}) if isinstance(found, Mapping) else found
    if not isinstance(found, Mapping):
        raise ArgumentError(f"[tool.torchwhy.{name}] in {path} must be a table, got {found!r}")
    return found
