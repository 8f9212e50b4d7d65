"""Numbers of a trace file, read from their decimals: time never passes through a float."""

from __future__ import annotations

import math
import re
from typing import Final

__all__ = ["NUMBER", "integer", "nanoseconds", "real"]

NUMBER: Final = re.compile(rb"(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?\Z")
"""A number as JSON has it."""

HEX: Final = re.compile(rb"0[xX]([0-9a-fA-F]+)\Z")
LARGEST: Final = 2**63 - 1
INFINITE: Final = {b"inf", b"+inf", b"-inf", b"infinity", b"+infinity", b"-infinity"}
FAR: Final = 10**12  # beyond the digits any file has: with such an exponent a number is 0 or out of range


def _scaled(text: bytes, power: int) -> tuple[int, bool] | None:
    """Return a number times 10**power, rounded half away from zero, and whether it was a whole one before.

    None where `text` is no number or beyond int64.
    """
    match = NUMBER.match(text)
    if match is None:
        return None
    sign, whole, fraction, exponent = match.groups()
    digits = (whole + (fraction or b"")).lstrip(b"0")
    if not digits:
        return 0, True
    shift = _exponent(exponent or b"0")
    before = len(digits) + shift + power - len(fraction or b"")  # digits before the point
    if before > 19:
        return None
    kept = digits[: max(before, 0)].ljust(max(before, 0), b"0")
    value = int(kept or b"0")
    rest = digits[before:] if before >= 0 else b"0" + digits
    if rest[:1] >= b"5":
        value += 1
    if value > LARGEST:
        return None
    return -value if sign else value, not rest.strip(b"0")


def _exponent(text: bytes) -> int:
    digits = text.lstrip(b"+-").lstrip(b"0") or b"0"
    size = FAR if len(digits) > 12 else int(digits)
    return -size if text.startswith(b"-") else size


def nanoseconds(text: bytes) -> int | None:
    """Return the nanoseconds of a decimal number of microseconds, rounded to the nearest, halves away from zero."""
    scaled = _scaled(text, 3)
    return None if scaled is None else scaled[0]


def integer(text: bytes) -> int | None:
    """Return a whole number, also one written as 3.0, 1e3 or 0x1f; None for all others and beyond int64."""
    match = HEX.match(text)
    if match is not None:
        value = int(match[1], 16)
        return value if value <= LARGEST else None
    scaled = _scaled(text, 0)
    return None if scaled is None or not scaled[1] else scaled[0]


def real(text: bytes) -> float | None:
    """Return a float; None for what is no number, or too large or too small for one."""
    if text.lower() in INFINITE:
        return -math.inf if text.startswith(b"-") else math.inf
    match = NUMBER.match(text)
    if match is None:
        return None
    value = float(text)
    zero = not (match[2] + (match[3] or b"")).strip(b"0")
    return value if math.isfinite(value) and (value != 0 or zero) else None
