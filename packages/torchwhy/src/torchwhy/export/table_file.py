"""A table of a trace as CSV or Parquet."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Final

from torchwhy.errors import ArgumentError, TorchWhyError
from torchwhy.export.result import Export
from torchwhy.trace.file.writing import whole_file
from torchwhy.trace.model.trace import Trace
from torchwhy.trace.tables.sql import RELATIONS

__all__ = ["TABLE_FORMATS", "check_table", "write_table"]

TABLE_FORMATS: Final = ("csv", "parquet")


def check_table(name: str) -> str:
    """Return a table's name.

    Raises:
        ArgumentError: no table has that name.
    """
    if name not in RELATIONS:
        raise ArgumentError(f"--table must be one of {', '.join(RELATIONS)}, got {name!r}")
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
    table = RELATIONS[check_table(name)](trace)
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
    return Export(trace.file, str(output), to, len(table), len(trace), output.stat().st_size)
