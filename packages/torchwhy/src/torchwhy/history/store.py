"""The store: a SQLite file of runs that several processes may add to at the same time."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from torchwhy.errors import TorchWhyError
from torchwhy.history.git import Commit
from torchwhy.history.runs import MeasuredRun

__all__ = ["VERSION", "HistoryError", "StoredRun", "add_runs", "stored_runs"]

VERSION: Final = 1
"""Version of the tables; SQLite keeps it in the file (`user_version`)."""

PATIENCE_S: Final = 60.0
"""How long a process waits for others that write."""

_TABLE: Final = """
CREATE TABLE runs (
    id INTEGER PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    metric TEXT NOT NULL,
    machine TEXT NOT NULL,
    configuration TEXT NOT NULL,
    revision TEXT NOT NULL,
    committed_s REAL,
    added_s REAL NOT NULL,
    source TEXT NOT NULL,
    torch TEXT NOT NULL,
    samples TEXT NOT NULL
)
"""


class HistoryError(TorchWhyError, OSError):
    """A store cannot be read or written."""


@dataclass(frozen=True)
class StoredRun:
    """A run in the store.

    Attributes:
        run: what it measured.
        configuration: what distinguishes it from other runs of the program, in the user's words.
        commit: of the program.
        added_s: when it was added, seconds since 1970.
    """

    run: MeasuredRun
    configuration: str
    commit: Commit
    added_s: float

    @property
    def series(self) -> tuple[str, str, str, str]:
        """The values that compared runs have in common: program, metric, machine and configuration."""
        return self.run.name, self.run.metric, self.run.machine, self.configuration

    @property
    def digest(self) -> str:
        """Equal only for the same measurement of the same commit."""
        parts = [*self.series, self.commit.id, self.run.samples]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def add_runs(path: Path, runs: Iterable[StoredRun]) -> tuple[bool, ...]:
    """Add all runs or no run, and make the store if it does not exist yet.

    Args:
        path: of the store.
        runs: to add.

    Returns:
        For each run whether it is new; one that is there already is not added again.

    Raises:
        HistoryError: the store cannot be read or written, or is of a newer version.
    """
    with _opened(path, "rwc") as store:
        store.execute("BEGIN IMMEDIATE")  # from here on no other process writes
        with store:
            if _version(store, path) == 0:
                store.execute(_TABLE)
                store.execute(f"PRAGMA user_version = {VERSION}")
            return tuple(store.execute(_INSERT, _row(each)).rowcount == 1 for each in runs)


def stored_runs(path: Path) -> tuple[StoredRun, ...]:
    """Return all runs, by the time of their commits; those of one commit, or without one, as they were added.

    Raises:
        HistoryError: there is no such store, or it cannot be read.
    """
    if path.exists() and not path.is_file():
        raise HistoryError(f"{path} is no file")
    if not path.is_file():
        raise HistoryError(f"{path} does not exist; `torchwhy history add RUN` makes it")
    with _opened(path, "ro") as store:
        if _version(store, path) == 0:
            return ()
        rows = store.execute(_SELECT).fetchall()
        try:
            return tuple(_from_row(row) for row in rows)
        except (TypeError, ValueError) as error:
            raise HistoryError(f"{path} is damaged: {error}") from error


_COLUMNS: Final = "name, metric, machine, configuration, revision, committed_s, added_s, source, torch, samples"
_INSERT: Final = f"INSERT INTO runs (digest, {_COLUMNS}) VALUES ({', '.join('?' * 11)}) ON CONFLICT (digest) DO NOTHING"
_SELECT: Final = f"SELECT {_COLUMNS} FROM runs ORDER BY coalesce(committed_s, added_s), id"


@contextmanager
def _opened(path: Path, mode: str) -> Iterator[sqlite3.Connection]:
    try:
        address = f"{path.absolute().as_uri()}?mode={mode}"
        store = sqlite3.connect(address, uri=True, timeout=PATIENCE_S, isolation_level=None)
    except sqlite3.Error as error:
        raise HistoryError(f"cannot open the history {path}: {error}") from error
    try:
        yield store
    except sqlite3.Error as error:
        raise HistoryError(f"cannot read or write the history {path}: {error}") from error
    finally:
        store.close()


def _version(store: sqlite3.Connection, path: Path) -> int:
    """The version of the store; 0 where it is new."""
    (version,) = store.execute("PRAGMA user_version").fetchone()
    if version == 0 and store.execute("SELECT count(*) FROM sqlite_master").fetchone() != (0,):
        raise HistoryError(f"{path} is an SQLite database of another program")
    if version > VERSION:
        raise HistoryError(
            f"{path} has version {version}, and this torchwhy reads up to {VERSION}: a newer torchwhy wrote it"
        )
    return int(version)


def _row(each: StoredRun) -> tuple[object, ...]:
    run = each.run
    return (
        each.digest, *each.series, each.commit.id, each.commit.when_s, each.added_s, run.source, run.torch,
        json.dumps(run.samples),
    )  # fmt: skip


def _from_row(row: tuple[str, str, str, str, str, float | None, float, str, str, str]) -> StoredRun:
    name, metric, machine, configuration, revision, committed_s, added_s, source, torch, text = row
    samples = tuple(float(value) for value in json.loads(text))
    if not samples:
        raise ValueError(f"the run of {source} has no samples")
    run = MeasuredRun(name, metric, machine, samples, source, torch)
    return StoredRun(run, configuration, Commit(revision, committed_s), added_s)
