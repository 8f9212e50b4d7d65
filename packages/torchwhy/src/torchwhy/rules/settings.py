"""Settings of rules in `pyproject.toml`:

[tool.torchwhy.rules]
select = ["A", "B", "dataloader-wait"]
ignore = ["C7"]

[tool.torchwhy.rules.dataloader-wait]    # or of its code
share = 0.1
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from torchwhy.errors import ArgumentError, ArgumentTypeError
from torchwhy.rules.catalogue import chosen_rules, matching, thresholds_by_slug
from torchwhy.rules.rule import Rule
from torchwhy.schema import UNDECODABLE

__all__ = ["Settings", "chosen", "settings_from"]


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
    return chosen_rules(settings.select, settings.ignore)


def settings_from(path: Path | None) -> Settings:
    """Read the tables of rules in a file; nothing is set where there is no file or table.

    Raises:
        ArgumentError: a table names no rule or no threshold, or a value makes no sense.
        ArgumentTypeError: a value has the wrong type.
        OSError: the file cannot be read.
    """
    content = path.read_bytes() if path else b""
    if path is None or b"torchwhy" not in content:
        return Settings()
    try:
        table = msgspec.toml.decode(content).get("tool", {}).get("torchwhy", {}).get("rules", {})
    except UNDECODABLE as error:
        raise ArgumentError(f"{path} is not TOML: {error}") from error
    try:
        return _settings(table)
    except (ArgumentError, ArgumentTypeError) as error:
        raise type(error)(f"[tool.torchwhy.rules] in {path}: {error}") from error


def _settings(table: object) -> Settings:
    if not isinstance(table, Mapping):
        raise ArgumentTypeError(f"must be a table, got {table!r}")
    labels = {name: _labels(name, table.get(name, [])) for name in ("select", "ignore")}
    thresholds: dict[str, Mapping[str, Any]] = {}
    for name, values in table.items():
        if name in labels:
            continue
        if not isinstance(values, Mapping):
            raise ArgumentError(f"{name} is neither select nor ignore nor the table of a rule, got {values!r}")
        thresholds |= thresholds_by_slug({name: values})
    return Settings(labels["select"], labels["ignore"], thresholds)


def _labels(name: str, values: object) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ArgumentTypeError(f'{name} must be a list of codes or names such as ["B9"], got {values!r}')
    matching(values)
    return tuple(values)
