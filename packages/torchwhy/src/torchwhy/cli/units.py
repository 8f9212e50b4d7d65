"""Numbers with units, as options take them."""

from __future__ import annotations

import re
from typing import Final

import typer

__all__ = ["percent", "seconds"]

_NUMBER: Final = r"(\d+\.?\d*|\.\d+)"
_TIME: Final = re.compile(_NUMBER + r"\s*([a-zµ]*)")
_CLOCK: Final = re.compile(r"(?:(\d+):)?(\d+):" + _NUMBER)
_SECONDS: Final = {"h": 3600.0, "m": 60.0, "min": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6}


def seconds(text: str | float, bare: str = "s") -> float:
    """Return a time in seconds.

    Args:
        text: a number with a unit from hours to microseconds, or as on a clock.
        bare: the unit of a number without one.

    Raises:
        typer.BadParameter: the text is not a time.

    >>> [seconds(text) for text in ("10", "250ms", "5min", "1.5 h", "1:30")]
    [10.0, 0.25, 300.0, 5400.0, 90.0]
    """
    given = str(text).strip().lower()
    if clock := _CLOCK.fullmatch(given):
        return 3600 * int(clock[1] or 0) + 60 * int(clock[2]) + float(clock[3])
    found = _TIME.fullmatch(given)
    if found is None or (found[2] or bare) not in _SECONDS:
        raise typer.BadParameter(f"must be a time such as 90, 90s, 5min or 1:30, got {text!r}")
    return float(found[1]) * _SECONDS[found[2] or bare]


def percent(text: str | float) -> float:
    """Return a number of percent.

    Raises:
        typer.BadParameter: the text is not a number.

    >>> percent("10%"), percent("2.5")
    (10.0, 2.5)
    """
    try:
        return float(str(text).strip().removesuffix("%"))
    except ValueError:
        raise typer.BadParameter(f"must be a number of percent such as 5 or 5%, got {text!r}") from None
