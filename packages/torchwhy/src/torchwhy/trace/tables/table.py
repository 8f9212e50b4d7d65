"""A table: named columns of equal length, the result of every query on a trace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from torchwhy.errors import ArgumentError, MissingPackageError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["PYTORCHS_COLUMNS", "Table"]

PYTORCHS_COLUMNS: Final = {
    "count": "calls",
    "cpu_time_total": "host_total_us",
    "self_cpu_time_total": "host_self_us",
    "cpu_time": "mean_us",
    "cpu_memory_usage": "host_bytes",
    "self_cpu_memory_usage": "host_self_bytes",
    **{
        f"{own}{device}_{theirs}": f"device_{ours}"
        for device in ("device", "cuda", "xpu")
        for own, theirs, ours in (
            ("", "time_total", "total_us"),
            ("self_", "time_total", "self_us"),
            ("", "memory_usage", "bytes"),
            ("self_", "memory_usage", "self_bytes"),
        )
    },
}
"""How `key_averages()` calls the columns of `ops`."""


class Table:
    """Rows and named columns.

    `table["name"]` is a column, `table.rows()` gives dictionaries, `table.to_pandas()` a DataFrame; printing shows the
    first rows. Columns also go by the names that `key_averages()` has for them, such as "self_cpu_time_total".

    >>> table = Table({"name": ["mul", "add"], "time_us": [2.0, 5.5]})
    >>> print(table.sorted("time_us"))
    name  time_us
    add       5.5
    mul         2
    >>> table.rows()[0]
    {'name': 'mul', 'time_us': 2.0}
    """

    def __init__(self, columns: Mapping[str, Sequence[Any] | np.ndarray[Any, Any]]) -> None:
        self.columns = {
            name: np.asarray(values) if not _is_text(values) else values for name, values in columns.items()
        }
        if len({len(values) for values in self.columns.values()}) > 1:
            lengths = {name: len(values) for name, values in self.columns.items()}
            raise ArgumentError(f"columns must have equal lengths, got {lengths}")

    @classmethod
    def of(cls, rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> Table:
        """Make a table of dictionaries that all have these names."""
        return cls({name: [row[name] for row in rows] for name in names})

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def __getitem__(self, name: str) -> Any:
        found = name if name in self.columns else PYTORCHS_COLUMNS.get(name)
        if found not in self.columns:
            raise ArgumentError(f"column must be one of {', '.join(self.columns)}, got {name!r}")
        return self.columns[found]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        names = list(self.columns)
        for values in zip(*(_plain(column) for column in self.columns.values()), strict=True):
            yield dict(zip(names, values, strict=True))

    def rows(self) -> list[dict[str, Any]]:
        """Every row as a dictionary of plain Python values."""
        return list(self)

    def take(self, positions: Sequence[int] | np.ndarray[Any, Any]) -> Table:
        """The rows at these positions, in this order."""
        chosen = np.asarray(positions)
        chosen = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen.astype(np.int64)
        return Table(
            {
                name: values[chosen] if isinstance(values, np.ndarray) else [values[i] for i in chosen.tolist()]
                for name, values in self.columns.items()
            }
        )

    def sorted(self, by: str, *, descending: bool = True) -> Table:
        """The rows in order of one column, the largest first; of equal values the first, and at the end what is NaN."""
        values = np.asarray(self[by])
        if values.dtype.kind == "f":
            return self.take(np.argsort(-values if descending else values, kind="stable"))
        if descending:
            return self.take(len(values) - 1 - np.argsort(values[::-1], kind="stable")[::-1])
        return self.take(np.argsort(values, kind="stable"))

    def head(self, n: int = 10) -> Table:
        """The first rows."""
        return self.take(np.arange(min(n, len(self))))

    def table(self, sort_by: str | None = None, row_limit: int = 100) -> str:
        """The first rows as text, in order of a column: what `key_averages().table(...)` is in PyTorch.

        Args:
            sort_by: a column; None keeps the order.
            row_limit: how many rows; -1 is all.
        """
        rows = self if sort_by is None else self.sorted(sort_by)
        return rows._text(len(rows) if row_limit < 0 else row_limit)

    def to_pandas(self) -> pd.DataFrame:
        """Return a DataFrame. Needs pandas: `pip install pandas`."""
        try:
            import pandas as pd
        except ModuleNotFoundError as error:
            raise MissingPackageError("a table as a DataFrame needs pandas: pip install pandas") from error
        return pd.DataFrame({name: _plain(values) for name, values in self.columns.items()})

    def to_arrow(self) -> Any:
        """Return a pyarrow.Table. Needs pyarrow: `pip install pyarrow`."""
        try:
            import pyarrow as pa  # type: ignore[import-not-found, unused-ignore]
        except ModuleNotFoundError as error:
            raise MissingPackageError("a table for Arrow needs pyarrow: pip install pyarrow") from error
        return pa.table({name: _plain(values) for name, values in self.columns.items()})

    def __str__(self) -> str:
        return self._text(20)

    def _text(self, limit: int) -> str:
        shown = self.head(limit)
        cells = {name: [_shown(value) for value in _plain(values)] for name, values in shown.columns.items()}
        widths = {name: max([len(name), *map(len, column)]) for name, column in cells.items()}
        right = {name: _is_number(values) for name, values in shown.columns.items()}

        def line(values: Mapping[str, str]) -> str:
            parts = (
                text.rjust(widths[name]) if right[name] else text.ljust(widths[name]) for name, text in values.items()
            )
            return "  ".join(parts).rstrip()

        lines = [line({name: name for name in cells})]
        lines += [line({name: column[i] for name, column in cells.items()}) for i in range(len(shown))]
        if len(self) > len(shown):
            lines.append(f"... {len(self) - len(shown)} more")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Table of {len(self)} rows\n{self}"


def _is_text(values: object) -> bool:
    return isinstance(values, list) and any(not isinstance(value, int | float | np.number) for value in values)


def _is_number(values: object) -> bool:
    return isinstance(values, np.ndarray) and values.dtype.kind in "iuf"


def _plain(values: Any) -> list[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


def _shown(value: object) -> str:
    if isinstance(value, float):
        if value != value:  # not a number: not known
            return "-"
        return f"{value:.3f}".rstrip("0").rstrip(".") if abs(value) >= 1000 or value.is_integer() else f"{value:.4g}"
    text = "" if value is None else str(value)
    return text if len(text) <= 60 else text[:57] + "..."
