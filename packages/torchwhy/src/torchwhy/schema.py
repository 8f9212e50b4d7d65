"""The number that every JSON answer and file of this package carries under `schema`, and errors of decoding."""

from __future__ import annotations

from typing import Final

import msgspec

__all__ = ["SCHEMA", "UNDECODABLE"]

SCHEMA: Final = 1
"""One number for all. It grows when a name disappears or changes its meaning, and not when one is added."""

UNDECODABLE: Final = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)
"""What msgspec raises for the bytes of an unknown file, JSON or TOML."""
