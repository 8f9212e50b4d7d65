"""Suggestions for misspelt names."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import SequenceMatcher, get_close_matches
from typing import Final

__all__ = ["closest", "did_you_mean"]

_MOST: Final = 0.75


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `, did you mean 'x'?`, or the list of known names when none is close.

    >>> did_you_mean("jsom", ["text", "json"]), did_you_mean("yaml", ["text", "json"])
    (", did you mean 'json'?", '; known are text, json.')
    """
    known = list(known)
    best = closest(name, known)
    return f", did you mean {best!r}?" if best else f"; known are {', '.join(known)}."


def closest(name: str, known: Collection[str]) -> str | None:
    """Return the name that a misspelt or abbreviated one probably meant.

    Unless most letters agree, the same beginning counts before the letters in common, as in an abbreviation.

    >>> closest("ops", ["copies", "operators"]), closest("setps", ["select", "steps"]), closest("zzz", ["copies"])
    ('operators', 'steps', None)
    """
    close = get_close_matches(name, known, n=len(known) or 1, cutoff=0.5)

    def likeness(word: str) -> tuple[bool, bool, float]:
        ratio = SequenceMatcher(a=word, b=name).ratio()
        return ratio >= _MOST, word[:2] == name[:2], ratio

    return max(close, key=likeness, default=None)
