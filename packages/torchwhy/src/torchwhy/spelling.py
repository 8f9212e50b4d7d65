"""What a misspelt name probably meant."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import SequenceMatcher, get_close_matches

__all__ = ["closest", "did_you_mean"]


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

    An abbreviation shares its beginning with what it stands for, so that counts before the letters in common.

    >>> closest("ops", ["copies", "operators"]), closest("zzz", ["copies"])
    ('operators', None)
    """
    close = get_close_matches(name, known, n=len(known) or 1, cutoff=0.5)
    return max(close, key=lambda word: (word[:2] == name[:2], SequenceMatcher(a=word, b=name).ratio()), default=None)
