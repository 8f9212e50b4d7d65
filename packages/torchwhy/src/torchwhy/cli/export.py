"""`torchwhy export`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from torchwhy.cli.console import complain, patience
from torchwhy.cli.documents import show
from torchwhy.cli.traces import trace_in
from torchwhy.errors import ArgumentError, TorchWhyError, TraceError
from torchwhy.export.perfetto import write_perfetto
from torchwhy.export.result import Export
from torchwhy.export.speedscope import write_speedscope
from torchwhy.export.table_file import TABLE_FORMATS, check_table, write_table
from torchwhy.loading.read import read_trace
from torchwhy.present.formats import check_format
from torchwhy.present.written_files import exported_trace
from torchwhy.trace.model.trace import Trace

__all__ = ["run"]

TARGETS: Final = ("speedscope", "perfetto", *TABLE_FORMATS)

_ENDINGS: Final = {"speedscope": ".speedscope.json", "perfetto": ".perfetto.json.gz"}


def run(trace: str, to: str, table: str | None, output: Path | None, form: str) -> int:
    """Write a trace for another program; return 0, 2 for misuse, 3 for what cannot be read or written."""
    try:
        check_format(form)
        if to not in TARGETS:
            raise ArgumentError(f"--to must be one of {', '.join(TARGETS)}, got {to!r}")  # noqa: TRY301
        if table is not None and to not in TABLE_FORMATS:
            raise ArgumentError(f"--table is about {' and '.join(TABLE_FORMATS)}, got --to {to}")  # noqa: TRY301
        check_table(table or "events")
        path = trace_in(trace, "exporting")
        if path is None:
            return complain(f"{trace} has the traces of several ranks: name one of them", 2)
        target = output or _beside(path, to, table or "events")
        with patience(f"reading {trace}"):
            made = _export(path, to, table or "events", target)
    except ArgumentError as error:
        return complain(error, 2)
    except TraceError as error:
        return complain(error, 3)
    except OSError as error:
        return complain(f"cannot write {error.filename or output}: {error.strerror or error}", 3)
    except TorchWhyError as error:
        return complain(error, 3)
    show(exported_trace(made), form)
    return 0


def _export(path: str, to: str, table: str, output: Path) -> Export:
    if to == "perfetto":
        return write_perfetto(path, output)
    trace = read_trace(path, Trace)
    return write_speedscope(trace, output) if to == "speedscope" else write_table(trace, table, output, to)


def _beside(path: str, to: str, table: str) -> Path:
    """A name in the current folder, after the trace's own."""
    name = "trace" if path == "-" else Path(path).name
    stem = name.removesuffix(".gz").removesuffix(".json").removesuffix(".pt.trace")
    return Path(f"{stem}{_ENDINGS.get(to, f'.{table}.{to}')}")
