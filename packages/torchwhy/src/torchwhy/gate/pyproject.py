"""Budgets in `pyproject.toml`:

[tool.torchwhy.budgets]
syncs__eq = 0
"aten::mm__max" = 4

[tool.torchwhy.budgets.train]     # added for `torchwhy gate RUN --name train`
graph_breaks__eq = 0
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from torchwhy.errors import ArgumentError
from torchwhy.gate.budget import Budget, parse_budgets
from torchwhy.pyproject import read_tool_table
from torchwhy.spelling import did_you_mean

__all__ = ["budgets_from"]


def budgets_from(path: Path, name: str | None = None) -> tuple[Budget, ...]:
    """Return the common budgets of a file, and the budgets of its table `name`, which override them.

    Raises:
        SettingsFileError: if the file cannot be read.
        ArgumentError: if a budget is wrong, or there is no such table.
    """
    table = read_tool_table(path, "budgets")
    common = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    named = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    if name is not None and name not in named:
        hint = did_you_mean(name, named) if named else ", it has no named tables"
        raise ArgumentError(f"{path} has no [tool.torchwhy.budgets.{name}]{hint}")
    return parse_budgets({**common, **(named[name] if name is not None else {})})
