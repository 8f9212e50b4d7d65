"""Budgets in `pyproject.toml`:

[tool.torchfx.budgets]
syncs__eq = 0
"aten::mm__max" = 4

[tool.torchfx.budgets.train]     # added for `torchfx gate RUN --name train`
graph_breaks__eq = 0
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from torchfx.errors import ArgumentError
from torchfx.profiler.counters.counts_file import CountsFileError
from torchfx.profiler.counters.metrics import did_you_mean
from torchfx.profiler.gate.budget import Budget, parse_budgets

__all__ = ["budgets_from"]


def budgets_from(path: Path, name: str | None = None) -> tuple[Budget, ...]:
    """Return the common budgets of a file, and those of its table `name`, which go before common ones.

    Raises:
        CountsFileError: if the file cannot be read.
        ArgumentError: if a budget is wrong, or there is no such table.
    """
    table = _table(path)
    common = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    named = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    if name is not None and name not in named:
        hint = did_you_mean(name, named) if named else ", it has no named tables"
        raise ArgumentError(f"{path} has no [tool.torchfx.budgets.{name}]{hint}")
    return parse_budgets({**common, **(named[name] if name is not None else {})})


def _table(path: Path) -> Mapping[str, Any]:
    try:
        content = msgspec.toml.decode(path.read_bytes())
    except OSError as error:
        raise CountsFileError(f"cannot read {path}: {error.strerror or error}") from error
    except msgspec.DecodeError as error:
        raise CountsFileError(f"{path} is not TOML: {error}") from error
    table = content.get("tool", {}).get("torchfx", {}).get("budgets", {})
    if not isinstance(table, Mapping):
        raise ArgumentError(f"[tool.torchfx.budgets] in {path} must be a table, got {table!r}")
    return table
