"""Which names of metrics there are, and what a misspelt one probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from torchfx.errors import ArgumentError
from torchfx.profiler.counters.metrics import METRICS

__all__ = ["check_name", "did_you_mean"]


def check_name(name: str) -> None:
    """Accept a metric or an operator.

    >>> check_name("sync")
    Traceback (most recent call last):
    torchfx.errors.ArgumentError: unknown metric 'sync', did you mean 'syncs'? Operators are written 'aten::mm'.
    """
    if name not in METRICS and "::" not in name:
        raise ArgumentError(f"unknown metric {name!r}{did_you_mean(name, METRICS)} Operators are written 'aten::mm'.")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `, did you mean 'x'?`, or the list of known names when none is close."""
    known = list(known)
    close = get_close_matches(name, known, n=1, cutoff=0.5)
    return f", did you mean {close[0]!r}?" if close else f"; known are {', '.join(known)}."
