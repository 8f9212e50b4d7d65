"""What `pyproject.toml` says of rules:

[tool.torchfx.rules]
select = ["A", "B", "dataloader-wait"]
ignore = ["C7"]

[tool.torchfx.rules.dataloader-wait]    # or of its code
share = 0.1
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec

from torchfx.errors import ArgumentError, ArgumentTypeError
from torchfx.profiler.rules.catalogue import all_rules, find_rule, matching
from torchfx.profiler.rules.rule import Rule

__all__ = ["Settings", "chosen", "nearest", "settings_from"]


@dataclass(frozen=True)
class Settings:
    """Which rules to ask, and with which thresholds.

    Attributes:
        select: codes, names or families; all rules where empty.
        ignore: those to leave out.
        thresholds: values by rule, then by name.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    thresholds: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def chosen(settings: Settings) -> tuple[Rule, ...]:
    """Return the rules to ask.

    Raises:
        ArgumentError: a label names no rule or family.
    """
    check_labels((*settings.select, *settings.ignore))
    wanted = matching(settings.select) if settings.select else frozenset(rule.code for rule in all_rules())
    codes = wanted - matching(settings.ignore)
    return tuple(rule for rule in all_rules() if rule.code in codes)


def check_labels(labels: tuple[str, ...]) -> None:
    """Raise ArgumentError, with what was probably meant, for a label that names no rule or family."""
    known = {rule.family.lower() for rule in all_rules()}
    known |= {label.lower() for rule in all_rules() for label in (rule.code, rule.slug)}
    for label in labels:
        if label.lower() not in known:
            raise ArgumentError(f"no rule or family is called {label!r}{nearest(label)}; `torchfx rule` lists all")


def nearest(label: str) -> str:
    """Return what a misspelt rule probably was, as the end of a message: ", nearest: B9 dataloader-wait"."""
    spelt = {name: rule for rule in all_rules() for name in (rule.slug, rule.code.lower())}
    close = get_close_matches(label.lower(), spelt, n=3, cutoff=0.5)
    close += [name for name in spelt if len(label) > 2 and label.lower() in name]
    found = list(dict.fromkeys(f"{spelt[name].code} {spelt[name].slug}" for name in close))[:3]
    return f"; nearest: {', '.join(found)}" if found else ""


def settings_from(path: Path | None) -> Settings:
    """Read the tables of rules in a file; nothing is set where there is no file or table.

    Raises:
        ArgumentError: a table names no rule or no threshold, or a value makes no sense.
        ArgumentTypeError: a value has the wrong type.
        OSError: the file cannot be read.
    """
    content = path.read_bytes() if path else b""
    if path is None or b"torchfx" not in content:
        return Settings()
    try:
        table = msgspec.toml.decode(content).get("tool", {}).get("torchfx", {}).get("rules", {})
    except msgspec.DecodeError as error:
        raise ArgumentError(f"{path} is not TOML: {error}") from error
    try:
        return _settings(table)
    except (ArgumentError, ArgumentTypeError) as error:
        raise type(error)(f"[tool.torchfx.rules] in {path}: {error}") from error


def _settings(table: object) -> Settings:
    if not isinstance(table, Mapping):
        raise ArgumentTypeError(f"must be a table, got {table!r}")
    labels = {name: _labels(name, table.get(name, [])) for name in ("select", "ignore")}
    thresholds = {}
    for name, values in table.items():
        if name in labels:
            continue
        if not isinstance(values, Mapping):
            raise ArgumentError(f"{name} is neither select nor ignore nor the table of a rule, got {values!r}")
        check_labels((name,))
        thresholds[find_rule(name).slug] = _thresholds(find_rule(name), values)
    return Settings(labels["select"], labels["ignore"], thresholds)


def _labels(name: str, values: object) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ArgumentTypeError(f'{name} must be a list of codes or names such as ["B9"], got {values!r}')
    check_labels(tuple(values))
    return tuple(values)


def _thresholds(rule: Rule, values: Mapping[str, object]) -> dict[str, Any]:
    known = rule.thresholds
    for name, value in values.items():
        if name not in known:
            raise ArgumentError(f"threshold of {rule.slug} must be one of: {', '.join(known) or 'none'}; got {name!r}")
        if isinstance(value, bool) != isinstance(known[name], bool) or not isinstance(value, int | float):
            raise ArgumentTypeError(f"threshold {name} of {rule.slug} must be a number, got {value!r}")
    return dict(values)
