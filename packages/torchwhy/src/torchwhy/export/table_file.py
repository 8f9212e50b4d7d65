"""A table of a trace or of a job as CSV or Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from torchwhy.errors import ArgumentError, TorchWhyError
from torchwhy.export.result import Export
from torchwhy.ranks.job import Job
from torchwhy.trace.file.writing import whole_file
from torchwhy.trace.model.trace import Trace
from torchwhy.trace.tables.sql import RELATIONS
from torchwhy.trace.tables.table import Table

__all__ = [
    "JOB_TABLES",
    "TABLE_FORMATS",
    "check_job_table",
    "check_table",
    "job_table",
    "write_job_table",
    "write_run_tables",
    "write_table",
]

TABLE_FORMATS: Final = ("csv", "parquet")


JOB_TABLES: Final[dict[str, Callable[[Job], Table]]] = {
    "ranks": lambda job: job.ranks,
    "collectives": Job.collectives,
    "stragglers": Job.stragglers,
}
"""The tables of a job, by the name of the attribute or method."""


def check_table(name: str) -> str:
    """Return a table's name.

    Raises:
        ArgumentError: no table has that name.
    """
    if name not in RELATIONS:
        raise ArgumentError(f"--table must be one of {', '.join(RELATIONS)}, got {name!r}")
    return name


def check_job_table(name: str) -> str:
    """Return the name of a table of a job.

    Raises:
        ArgumentError: no table has that name.
    """
    if name not in JOB_TABLES:
        raise ArgumentError(f"--table of several ranks must be one of {', '.join(JOB_TABLES)}, got {name!r}")
    return name


def write_table(trace: Trace, name: str, output: Path, to: str) -> Export:
    """Write all rows of a table, with the columns of the Python method of the same name.

    Args:
        trace: what it is about.
        name: one of `RELATIONS`; "events" is `trace.to_table()`.
        output: the file; a CSV is compressed where its name ends in .gz.
        to: "csv", in UTF-8 with a line of names, empty where nothing is known; or "parquet", which needs pyarrow.

    Raises:
        ArgumentError: there is no such table.
        TorchWhyError: pyarrow isn't installed.
        OSError: the file cannot be written.
    """
    return _write(RELATIONS[check_table(name)](trace), trace.file, len(trace), output, to)


def write_job_table(job: Job, name: str, output: Path, to: str) -> Export:
    """Write all rows of a table of a job, after a column `job` with the name of its folder.

    Args:
        job: what it is about.
        name: one of `JOB_TABLES`.
        output, to: as for `write_table`.

    Raises:
        ArgumentError: there is no such table.
        TorchWhyError: pyarrow isn't installed.
        OSError: the file cannot be written.
    """
    table, events = job_table(job, name), sum(summary.events for summary in job.summaries)
    return write_run_tables({Path(job.folder).resolve().name: table}, job.folder, events, output, to)


def job_table(job: Job, name: str) -> Table:
    """Return a table of a job, one of `JOB_TABLES`.

    Raises:
        ArgumentError: there is no such table.
    """
    return JOB_TABLES[check_job_table(name)](job)


def write_run_tables(tables: Mapping[str, Table], folder: str, events: int, output: Path, to: str) -> Export:
    """Write the rows of a table of several jobs, after a column `job` with the name of each.

    Args:
        tables: the same table of each job, by the job's name; at least one.
        folder: that has the folders of all jobs.
        events: of all their traces.
        output, to: as for `write_table`.

    Raises:
        TorchWhyError: pyarrow isn't installed.
        OSError: the file cannot be written.
    """
    rows = [{"job": name, **row} for name, table in tables.items() for row in table]
    names = ["job", *next(iter(tables.values())).columns]
    return _write(Table.of(rows, names), folder, events, output, to)


def _write(table: Table, source: str, events: int, output: Path, to: str) -> Export:
    if to == "parquet":
        try:
            import pyarrow.parquet
        except ImportError as error:
            raise TorchWhyError("--to parquet needs pyarrow: pip install pyarrow") from error
        with whole_file(output) as file:
            pyarrow.parquet.write_table(table.to_arrow(), file)
    else:
        with whole_file(output) as file, io.TextIOWrapper(file, encoding="utf-8", newline="") as text:
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow(table.columns)
            writer.writerows(["" if value != value else value for value in row.values()] for row in table)
    return Export(source, str(output), to, len(table), events, output.stat().st_size)
