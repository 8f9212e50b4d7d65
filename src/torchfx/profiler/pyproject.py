"""Where settings are: the nearest `pyproject.toml`."""

from __future__ import annotations

from pathlib import Path

__all__ = ["find_pyproject"]


def find_pyproject(start: Path) -> Path | None:
    """Return the nearest `pyproject.toml` in `start` or above it."""
    for folder in (start.resolve(), *start.resolve().parents):
        if (folder / "pyproject.toml").is_file():
            return folder / "pyproject.toml"
    return None
