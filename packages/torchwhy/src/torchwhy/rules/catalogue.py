"""All rules there are: those in this package's files, and those other packages offer by an entry point."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import torchwhy.rules as package
from torchwhy import plugins
from torchwhy.errors import ArgumentError
from torchwhy.rules.rule import Rule

__all__ = [
    "all_rules",
    "chosen_rules",
    "find_rule",
    "matching",
    "not_loaded",
    "thresholds_by_slug",
]


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule by code: families in alphabetical order, those about trust (A) first."""
    found = [*(rule for module in _modules(package) for rule in _rules_in(module)), *_offered()]
    seen: dict[str, Rule] = {}
    for rule in found:
        for label in (rule.code, rule.slug):
            if label in seen and seen[label] is not rule:
                raise ArgumentError(f"two rules are called {label}: {seen[label].slug} and {rule.slug}")
            seen[label] = rule
    return tuple(sorted({rule.code: rule for rule in found}.values(), key=_order))


def not_loaded() -> Mapping[str, str]:
    """Entry points that could not be loaded, by name: the error in a line."""
    return {**plugins.offered(plugins.VOCABULARY)[1], **plugins.offered(plugins.RULES)[1]}


def find_rule(label: str) -> Rule:
    """Return the rule of a code or slug.

    Raises:
        ArgumentError: no rule has that name; the message names what was probably meant.
    """
    found = _labels().get(label.lower())
    if found is None:
        raise ArgumentError(f"no rule is called {label!r}{_nearest(label)}; `torchwhy rule` lists all")
    return found


def matching(labels: str | Iterable[str]) -> frozenset[str]:
    """Return the codes of the rules that codes, slugs or families ("B") name.

    Args:
        labels: one, several with commas between ("B9,C"), or a list of them.

    Raises:
        ArgumentError: a label names none.
    """
    families = {rule.family.lower() for rule in all_rules()}
    found: set[str] = set()
    for label in _split(labels):
        if label.lower() in families:
            found |= {rule.code for rule in all_rules() if rule.family.lower() == label.lower()}
        elif label.lower() in _labels():
            found.add(_labels()[label.lower()].code)
        else:
            raise ArgumentError(f"no rule or family is called {label!r}{_nearest(label)}; `torchwhy rule` lists all")
    return frozenset(found)


def chosen_rules(select: str | Iterable[str] = (), ignore: str | Iterable[str] = ()) -> tuple[Rule, ...]:
    """Return the rules that are selected, all where none is, without those to ignore.

    Raises:
        ArgumentError: a label names no rule or family.
    """
    wanted, unwanted = matching(select), matching(ignore)
    return tuple(rule for rule in all_rules() if (not wanted or rule.code in wanted) and rule.code not in unwanted)


def thresholds_by_slug(
    given: Mapping[str, Mapping[str, Any]] | None, rules: Iterable[Rule] = ()
) -> dict[str, Mapping[str, Any]]:
    """Return thresholds by the slug of their rule.

    Args:
        given: values by rule (code or slug), then by name.
        rules: further rules, which the catalogue needn't have.

    Raises:
        ArgumentError: a key names no rule, or a rule has no such threshold.
        ArgumentTypeError: a threshold isn't a number.
    """
    own = {label: rule for rule in rules for label in (rule.code.lower(), rule.slug)}
    found: dict[str, Mapping[str, Any]] = {}
    for label, values in (given or {}).items():
        rule = own.get(label.lower()) or find_rule(label)
        found[rule.slug] = rule.checked(values)
    return found


def _split(labels: str | Iterable[str]) -> list[str]:
    several = (labels,) if isinstance(labels, str) else labels
    return [label.strip() for text in several for label in text.split(",") if label.strip()]


def _labels() -> dict[str, Rule]:
    return {label: rule for rule in all_rules() for label in (rule.slug, rule.code.lower())}


def _nearest(label: str) -> str:
    """The nearest rules to a misspelt name, as the end of a message: "; nearest: B9 dataloader-wait"."""
    spelt = _labels()
    close = get_close_matches(label.lower(), spelt, n=3, cutoff=0.5)
    close += [name for name in spelt if len(label) > 2 and label.lower() in name]
    found = list(dict.fromkeys(f"{spelt[name].code} {spelt[name].slug}" for name in close))[:3]
    return f"; nearest: {', '.join(found)}" if found else ""


def _offered() -> Iterator[Rule]:
    """Rules of other packages."""
    for each in plugins.offered(plugins.RULES)[0]:
        if isinstance(each, Rule):
            yield each
        elif isinstance(each, ModuleType) and hasattr(each, "__path__"):
            yield from (rule for module in _modules(each) for rule in _rules_in(module))
        else:
            yield from _rules_in(each)


def _modules(package: ModuleType) -> list[object]:
    """All files of a package, and of the packages of families below it."""
    modules = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    return [import_module(module.name) for module in modules if not module.ispkg]


def _rules_in(module: object) -> list[Rule]:
    return [value for value in vars(module).values() if isinstance(value, Rule)]


def _order(rule: Rule) -> tuple[str, int]:
    digits = rule.code[len(rule.family) :]
    return rule.family, int(digits or 0)
