"""Entry points of other packages: rules (`torchwhy.rules`) and vocabulary (`torchwhy.vocabulary`)."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from typing import Any, Final

__all__ = ["RULES", "VOCABULARY", "in_a_line", "makers", "offered"]

RULES: Final = "torchwhy.rules"
"""Entry points of this group name a `Rule`, a module with rules in it, or a package of such modules."""

VOCABULARY: Final = "torchwhy.vocabulary"
"""Entry points of this group name a `Vocabulary`."""


@cache
def offered(group: str) -> tuple[list[object], dict[str, str]]:
    """Return the objects of a group's entry points, and by name the reason why others could not be loaded."""
    found: list[object] = []
    failed = {}
    for entry in _all().select(group=group):
        try:
            found.append(entry.load())
        except Exception as error:  # noqa: BLE001, PERF203
            # Importing another package can raise anything; a broken one must not take the others away.
            failed[entry.name] = in_a_line(error)
    return found, failed


def makers() -> list[str]:
    """Return each package that brings rules or vocabulary, with its version."""
    entries = [entry for group in (RULES, VOCABULARY) for entry in _all().select(group=group)]
    return sorted({f"{entry.dist.name} {entry.dist.version}" for entry in entries if entry.dist is not None})


def in_a_line(error: Exception) -> str:
    """Return an error's kind and message.

    >>> in_a_line(KeyError("Input Dims")), in_a_line(ValueError())
    ("KeyError: 'Input Dims'", 'ValueError')
    """
    return " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")[:200]


@cache
def _all() -> Any:
    return entry_points()  # reads the files of every installed package: once
