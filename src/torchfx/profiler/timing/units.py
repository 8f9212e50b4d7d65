"""Seconds, as people read them."""

from __future__ import annotations

__all__ = ["seconds"]

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))


def seconds(value_s: float) -> str:
    """Return a duration in s with three significant digits and a fitting unit.

    >>> seconds(0.0123456), seconds(2.0), seconds(4.2e-8), seconds(0.0)
    ('12.3 ms', '2.00 s', '42.0 ns', '0.00 ns')
    """
    scale, unit = next(((scale, unit) for scale, unit in _UNITS if abs(value_s) >= scale), (1e-9, "ns"))
    number = value_s / scale
    digits = 2 if abs(number) < 10 else 1 if abs(number) < 100 else 0
    return f"{number:.{digits}f} {unit}"
