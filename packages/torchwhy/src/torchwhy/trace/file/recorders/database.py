"""SQLite files of recorders, opened for reading only, with the columns that a version of a recorder wrote."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from torchwhy.errors import TraceError
from torchwhy.trace.file.limits import LIMITS
from torchwhy.trace.file.recorders.trace_text import Ended

__all__ = ["MAGIC", "Database", "opened"]

MOST: Final = LIMITS.events
"""Rows of a table or view; a view may have rows without end."""

MAGIC: Final = b"SQLite format 3\0"


class Database:
    """An open database.

    Attributes:
        name: how messages call the file.
        tables: the names of its tables and views.
    """

    def __init__(self, name: str, connection: sqlite3.Connection) -> None:
        self.name = name
        self._connection = connection
        connection.text_factory = lambda data: data.decode("utf-8", "replace")
        try:
            connection.execute("PRAGMA trusted_schema = OFF")  # the SQL of its views is anyone's
            found = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
        except sqlite3.Error as error:
            raise TraceError(f"{name} is a damaged SQLite database: {error}") from None
        self.tables = frozenset(str(each) for (each,) in found)

    def columns(self, table: str) -> frozenset[str]:
        """Return the names of a table's columns; none where there is no such table."""
        if table not in self.tables:
            return frozenset()
        try:
            found = self._connection.execute(f"PRAGMA table_info({_quoted(table)})").fetchall()
        except sqlite3.Error as error:
            raise TraceError(f"{self.name} has a table {table} that cannot be read: {error}") from None
        return frozenset(str(row[1]) for row in found)

    def rows(self, table: str, columns: Sequence[str], needed: Sequence[str] = ()) -> Iterator[Sequence[Any]]:
        """Yield the rows of a table, None for columns that it lacks; nothing where there is no such table.

        Args:
            table: its name, or a view's.
            columns: those to return, in this order. Of "a|b" the first that exists.
            needed: those without which the table says nothing.

        Raises:
            TraceError: a needed column is missing, or no row can be read.
            Ended: the database is damaged after some rows.
        """
        if table not in self.tables:
            return
        there = self.columns(table)
        missing = [each for each in needed if not there & set(each.split("|"))]
        if missing:
            lacks = ", ".join(each.replace("|", " or ") for each in missing)
            raise TraceError(f"{self.name} cannot be read: its table {table} has no column {lacks}")
        chosen = [next((_quoted(one) for one in each.split("|") if one in there), "NULL") for each in columns]
        given = 0
        try:
            for row in self._connection.execute(f"SELECT {', '.join(chosen)} FROM {_quoted(table)}"):
                given += 1
                if given > MOST:
                    raise TraceError(f"{self.name} cannot be read: {table} has more than {MOST:,} rows")
                yield row
        except (sqlite3.Error, OverflowError) as error:
            if given:
                raise Ended from error
            raise TraceError(f"{self.name} has a table {table} that cannot be read: {error}") from None

    def texts(self, table: str, key: str, value: str) -> dict[int, str]:
        """Return a table that gives texts by number; empty where the file lacks it."""
        there = self.columns(table)
        if not {key, value} <= there:
            return {}
        return {
            number: text
            for number, text in self.rows(table, (key, value))
            if isinstance(number, int) and isinstance(text, str)
        }


@contextmanager
def opened(name: str, path: Path | None, chunks: Iterator[bytes]) -> Iterator[Database]:
    """Open the database in a file.

    Args:
        name: how messages call it.
        path: where it lies; None where it came out of something else, such as gzip data or a pipe.
        chunks: its bytes; read where `path` is None, into a temporary file.

    Raises:
        TraceError: it cannot be opened.
    """
    with ExitStack() as kept:
        if path is None:
            path = Path(kept.enter_context(TemporaryDirectory(prefix="torchwhy-"))) / "trace.sqlite"
            with path.open("wb") as file:
                file.writelines(chunks)
        try:
            connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        except sqlite3.Error as error:
            raise TraceError(f"{name} cannot be opened as an SQLite database: {error}") from None
        yield Database(name, kept.enter_context(closing(connection)))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
