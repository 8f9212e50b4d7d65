"""Numbers and what they are made of as aligned lines for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

__all__ = ["Row", "few", "table"]

SHOWN = 8  # operators, lines and reasons named before "and n more"


class Row(NamedTuple):
    """One line: what, how many, and where from."""

    label: str
    number: str
    text: str = ""

    def __str__(self) -> str:
        """Return the line outside of a table, the number first."""
        return " ".join(part for part in (self.number, self.label, self.text) if part)


def few(rows: Sequence[Row]) -> list[Row]:
    """Return the first rows, and how many follow.

    >>> few([Row("aten::mm", "2")] * 10)[-1]
    Row(label='and 2 more', number='', text='')
    """
    return [*rows[:SHOWN], *([Row(f"and {len(rows) - SHOWN} more", "")] if len(rows) > SHOWN else [])]


def table(rows: Iterable[Row], notes: Iterable[str]) -> str:
    """Return the rows in columns, then the notes.

    >>> print(table([Row("operators", "2"), Row("    aten::mm", "2"), Row("allocations", "12", "2.05 kB")], ["rough"]))
    operators         2
        aten::mm      2
    allocations      12  2.05 kB
    note: rough
    """
    rows = list(rows)
    width = max((len(row.label) for row in rows), default=0)
    digits = max((len(row.number) for row in rows), default=0)
    lines = [f"{row.label:<{width}}  {row.number:>{digits}}  {row.text}".rstrip() for row in rows]
    return "\n".join([*lines, *(f"note: {note}" for note in notes)])
