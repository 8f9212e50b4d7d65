"""The number that every JSON answer and file of this package carries under `schema`."""

from __future__ import annotations

from typing import Final

__all__ = ["SCHEMA"]

SCHEMA: Final = 1
"""One number for all. It grows when a name disappears or changes its meaning, and not when one is added."""
