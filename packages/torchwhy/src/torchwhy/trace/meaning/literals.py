"""Texts of which a match of a regular expression has at least one: few names need to be tried when those are known."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from typing import Any, Final

__all__ = ["required_literals"]

_parser: Final[Any] = import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")

SHORTEST: Final = 2
"""A shorter text is in most names."""

MOST: Final = 200
"""If there are more texts than this to look for, trying every name is as fast."""

# A choice of texts; None where nothing is known.
_Choice = tuple[str, ...] | None


@cache
def required_literals(pattern: str) -> tuple[str, ...] | None:
    """Return texts in lower case, of which every ASCII text that matches has one, itself in lower case; None: unknown.

    >>> required_literals(r"(cuda|hip)Malloc$"), required_literals(r"(?i:.*graphlaunch)"), required_literals(r"\\d+")
    (('malloc',), ('graphlaunch',), None)
    """
    found = _of_sequence(_parser.parse(pattern))
    return found if found and len(found) <= MOST and min(map(len, found)) >= SHORTEST else None


def _of_sequence(items: Iterable[Any]) -> _Choice:
    """The best choice of what stands one after another; characters in a row are one text."""
    choices: list[_Choice] = []
    run = ""
    for kind, value in items:
        if str(kind) == "LITERAL" and value < 0x80:
            run += chr(value).lower()
            continue
        choices += [(run,), _of_item(str(kind), value)]
        run = ""
    known = [choice for choice in (*choices, (run,)) if choice and all(choice)]
    return max(known, key=lambda choice: (min(map(len, choice)), -len(choice)), default=None)


def _of_item(kind: str, value: Any) -> _Choice:
    if kind == "SUBPATTERN":
        return _of_sequence(value[-1])
    if kind in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        return _of_sequence(value[2]) if value[0] else None
    if kind == "BRANCH":
        branches = [_of_sequence(branch) for branch in value[1]]
        return tuple(dict.fromkeys(text for branch in branches for text in branch or ("",)))
    return None
