"""All changes that there are, found in the files of `tuning/changes`."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from typing import Any

import torchwhy.tuning.changes as package
from torchwhy.tuning.change import Change, ChangeKind
from torchwhy.tuning.records import Facts

__all__ = ["all_kinds", "changes_for", "combined"]


@cache
def all_kinds() -> tuple[ChangeKind, ...]:
    """Return every kind of change."""
    modules = [import_module(f"{package.__name__}.{found.name}") for found in pkgutil.iter_modules(package.__path__)]
    return tuple(kind for module in modules for kind in vars(module).values() if isinstance(kind, ChangeKind))


def changes_for(facts: Facts, stakes: Mapping[str, float]) -> list[Change]:
    """Return the changes that fit a program, those first for which the findings put most at stake.

    Args:
        facts: from a run.
        stakes: by the slug of a rule, the share of the time that its findings put at stake.
    """
    return sorted(_all(facts, stakes), key=lambda change: (-change.stake, not change.answers))


def _all(facts: Facts, stakes: Mapping[str, float]) -> Iterator[Change]:
    for kind in all_kinds():
        named = tuple(slug for slug in kind.answers if slug in stakes)
        if kind.asked and not named:
            continue
        stake = max((stakes[slug] for slug in named), default=0.0)
        for change in kind.function(facts):
            yield replace(change, kind=kind.name, answers=named, stake=stake)


def combined(several: tuple[Change, ...]) -> Change:
    """Return several changes as one."""
    return Change(
        " + ".join(change.name for change in several),
        tuple(line for change in several for line in change.permanent),
        {name: value for change in several for name, value in change.environment.items()},
        partial(_apply_all, tuple(change.apply for change in several if change.apply is not None)),
        "; ".join(change.inexact for change in several if change.inexact),
        "combination",
        tuple(dict.fromkeys(slug for change in several for slug in change.answers)),
        max(change.stake for change in several),
    )


def _apply_all(every: tuple[Callable[[Any], None], ...], observer: Any) -> None:
    for apply in every:
        apply(observer)
