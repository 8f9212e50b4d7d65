"""A table about a trace (`trace.ops()` and others) as a document."""

from __future__ import annotations

import re
from typing import Final, Literal

import msgspec
import numpy as np

from torchwhy.errors import ArgumentError
from torchwhy.present.document import Amount, Cell, Column, Document, File, Name, Row, rows_of
from torchwhy.present.document import Table as TableBlock
from torchwhy.schema import SCHEMA
from torchwhy.trace.tables.table import PYTORCHS_COLUMNS, Table
from torchwhy.wording import digits, duration, percent, size_text

__all__ = ["TableData", "column_called", "trace_table"]

Value = str | int | float | bool | None

_ADDITIVE: Final = re.compile(r"(.*_)?(calls|self_us|self_bytes|pieces)|total_us|time_us")
"""Columns whose values add up to something: `host_total_us` counts what is called inside again."""

_BESIDE: Final = 2
"""Columns of numbers that stay next to the name; more may go on a second line where room is short."""

_LONG: Final = 24
"""A column with a text longer than this may be cut."""


class TableData(msgspec.Struct, frozen=True):
    """A table: its name, the file it is about, and all rows with the names of the Python method's columns.

    Attributes:
        total: sums over all rows, for columns that add up.
    """

    schema: int
    table: str
    file: str
    rows: tuple[dict[str, Value], ...]
    total: dict[str, Value]


def column_called(table: Table, given: str) -> str:
    """Return the column of this name, title, or name in `key_averages()`; a title's blanks may be underscores.

    >>> column_called(Table({"name": ["mul"], "host_self_us": [2.0]}), "host self")
    'host_self_us'
    """
    if PYTORCHS_COLUMNS.get(given) in table.columns:
        return PYTORCHS_COLUMNS[given]
    titles = {_title(column): column for column in table.columns}
    if _title(given) not in titles:
        raise ArgumentError(f"column must be one of {', '.join(titles)} (or {', '.join(table.columns)}), got {given!r}")
    return titles[_title(given)]


def trace_table(table: Table, name: str, file: str, limit: int | None = 20, nothing: str = "") -> Document:
    """Return a table with a line of totals.

    Args:
        table: in the order in which to show it.
        name: such as "ops".
        file: what it is about.
        limit: rows of the short view; all where None.
        nothing: why the table is empty, if that is known.
    """
    rows, total = table.rows(), _totals(table)
    names = [column for column in table.columns if column != "full_name"]
    numbers = [column for column in names if _is_number(table.columns[column])]
    below = numbers[_BESIDE:]
    columns = tuple(Column(_title(column), column in numbers, column in below, _sums(column)) for column in names)
    long = {column for column in names if max(map(len, filter(_is_text, table.columns[column])), default=0) > _LONG}
    shown = rows_of([tuple(_cell(column, row[column], column in long) for column in names) for row in rows], limit)
    sums = tuple("total" if i == 0 else _cell(column, total.get(column)) for i, column in enumerate(names))
    block = TableBlock(
        columns,
        (*shown, Row(sums, total=True)) if total and rows else shown,
        f"{name} of {file}",
        () if rows else (nothing or "Nothing of this kind was recorded.",),
        ("row", "rows"),
    )
    return Document("", (block,), TableData(SCHEMA, name, file, tuple(rows), total), command="explain", file=file)


def _totals(table: Table) -> dict[str, Value]:
    return {
        column: values.sum().item()
        for column, values in table.columns.items()
        if _ADDITIVE.fullmatch(column) and isinstance(values, np.ndarray)
    }


def _sums(column: str) -> Literal["", "us", "B", "count"]:
    """The unit of a column's sums over steps, or ""; `host_total_us` adds up, though it counts callees again."""
    if not re.fullmatch(r"(.*_)?(calls|total_us|self_us|host_us|device_us|bytes|pieces)|time_us", column):
        return ""
    return "us" if column.endswith("_us") else "B" if column.endswith("bytes") else "count"


def _is_number(values: object) -> bool:
    return isinstance(values, np.ndarray) and values.dtype.kind in "iuf"


def _title(column: str) -> str:
    return column.removesuffix("_us").replace("_", " ")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _cell(column: str, value: Value, long: bool = False) -> Cell:
    if value is None or value != value:  # NaN: not known
        return ""
    if isinstance(value, str):
        if not long:
            return value
        return File(value) if column in ("path", "stack", "file") else Name(value)
    if isinstance(value, bool):
        return "yes" if value else ""
    return Amount(_amount(column, value), value)


def _amount(column: str, value: float) -> str:
    if column.endswith("_us"):
        return duration(value)
    if column.endswith("share"):
        return percent(value)
    if column.endswith("bytes"):
        return size_text(value)
    return digits(value, 4) if isinstance(value, float) else f"{value:,}"
