"""All rules there are: those in this package's files, and those other packages offer by an entry point."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Final

import torchfx.profiler.rules as package
from torchfx.errors import ArgumentError
from torchfx.profiler.rules.rule import Rule

__all__ = ["GROUP", "all_rules", "find_rule", "in_a_line", "matching", "not_loaded"]

GROUP: Final = "torchfx.rules"
"""Entry points of this group name a `Rule`, or a module with rules in it."""


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule by code: families in alphabetical order, those about trust (A) first."""
    found = [*(rule for module in _modules() for rule in _rules_in(module)), *_offered()[0]]
    seen: dict[str, Rule] = {}
    for rule in found:
        for label in (rule.code, rule.slug):
            if label in seen and seen[label] is not rule:
                raise ArgumentError(f"two rules are called {label}: {seen[label].slug} and {rule.slug}")
            seen[label] = rule
    return tuple(sorted({rule.code: rule for rule in found}.values(), key=_order))


def in_a_line(error: Exception) -> str:
    """Return an error's kind and message.

    >>> in_a_line(KeyError("Input Dims")), in_a_line(ValueError())
    ("KeyError: 'Input Dims'", 'ValueError')
    """
    return " ".join(f"{type(error).__name__}: {error}".split()).removesuffix(":")[:200]


def not_loaded() -> Mapping[str, str]:
    """Entry points that could not be loaded, by name: the error in a line."""
    return _offered()[1]


def find_rule(label: str) -> Rule:
    """Return the rule of a code or slug.

    Raises:
        ArgumentError: there is none.
    """
    for rule in all_rules():
        if label.lower() in {rule.code.lower(), rule.slug}:
            return rule
    raise ArgumentError(f"rule must be a code or name that `torchfx rule` lists, got {label!r}")


def matching(labels: tuple[str, ...]) -> frozenset[str]:
    """Return the codes of the rules that codes, slugs or families ("B") name.

    Raises:
        ArgumentError: a label names none.
    """
    families = {rule.family.lower(): rule.family for rule in all_rules()}
    found: set[str] = set()
    for label in labels:
        if label.lower() in families:
            found |= {rule.code for rule in all_rules() if rule.family.lower() == label.lower()}
        else:
            found.add(find_rule(label).code)
    return frozenset(found)


@cache
def _offered() -> tuple[list[Rule], dict[str, str]]:
    """Rules of other packages, and why some of them could not be loaded."""
    found: list[Rule] = []
    failed = {}
    for entry in entry_points(group=GROUP):
        try:
            offered = entry.load()
            found += [offered] if isinstance(offered, Rule) else _rules_in(offered)
        except Exception as error:  # noqa: BLE001, PERF203
            # Importing another package can raise anything; a broken one must not take the other rules away.
            failed[entry.name] = in_a_line(error)
    return found, failed


def _modules() -> list[object]:
    """The files of the families; by convention packages below this one."""
    return [
        import_module(module.name)
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        if not module.ispkg and module.name.count(".") > package.__name__.count(".") + 1
    ]


def _rules_in(module: object) -> list[Rule]:
    return [value for value in vars(module).values() if isinstance(value, Rule)]


def _order(rule: Rule) -> tuple[str, int]:
    digits = rule.code[len(rule.family) :]
    return rule.family, int(digits or 0)
