"""`torchwhy export`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from torchwhy.cli.console import complain, patience
from torchwhy.cli.documents import show
from torchwhy.cli.jobs import Reading, read_job, read_runs
from torchwhy.cli.traces import trace_in
from torchwhy.errors import ArgumentError, TorchWhyError, TraceError
from torchwhy.export.perfetto import write_perfetto
from torchwhy.export.result import Export
from torchwhy.export.speedscope import write_speedscope
from torchwhy.export.table_file import (
    TABLE_FORMATS,
    check_job_table,
    check_table,
    job_table,
    write_job_table,
    write_run_tables,
    write_table,
)
from torchwhy.loading.read import read_trace
from torchwhy.present.formats import check_format
from torchwhy.present.written_files import exported_trace
from torchwhy.pyproject import SettingsFileError, find_pyproject
from torchwhy.ranks.folder import runs_in
from torchwhy.rules.settings import settings_from
from torchwhy.trace.model.trace import Trace

__all__ = ["Reading", "run"]

TARGETS: Final = ("speedscope", "perfetto", *TABLE_FORMATS)

_ENDINGS: Final = {"speedscope": ".speedscope.json", "perfetto": ".perfetto.json.gz"}


def run(trace: str, to: str, table: str | None, output: Path | None, form: str, reading: Reading) -> int:
    """Write a trace, or a table of a job, for another program.

    Returns:
        0, 2 for misuse, 3 for what cannot be read or written.
    """
    try:
        check_format(form)
        if to not in TARGETS:
            raise ArgumentError(f"--to must be one of {', '.join(TARGETS)}, got {to!r}")  # noqa: TRY301
        if table is not None and to not in TABLE_FORMATS:
            raise ArgumentError(f"--table is about {' and '.join(TABLE_FORMATS)}, got --to {to}")  # noqa: TRY301
        runs = runs_in(trace)
        path = None if runs else trace_in(trace, "exporting")
        if runs:
            made = _of_runs(trace, runs, to, table or "ranks", output, reading)
        elif path is None:
            made = _of_job(trace, to, table or "ranks", output, reading)
        else:
            check_table(table or "events")
            target = output or _beside(path, to, table or "events")
            with patience(f"reading {trace}"):
                made = _export(path, to, table or "events", target)
    except ArgumentError as error:
        return complain(error, 2)
    except (TraceError, SettingsFileError) as error:
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


def _of_job(folder: str, to: str, table: str, output: Path | None, reading: Reading) -> Export:
    _check(folder, to, table, "traces of several ranks")
    with patience(f"reading {folder}"):
        job = read_job(folder, reading, settings_from(find_pyproject(Path.cwd())).thresholds)
    return write_job_table(job, table, output or _beside(str(Path(folder).resolve()), to, table), to)


def _of_runs(folder: str, runs: dict[str, Path], to: str, table: str, output: Path | None, reading: Reading) -> Export:
    _check(folder, to, table, "several runs")
    tables, events = {}, 0
    with patience(f"reading {folder}"):
        for name, job in read_runs(runs, reading, settings_from(find_pyproject(Path.cwd())).thresholds):
            tables[name] = job_table(job, table)
            events += sum(summary.events for summary in job.summaries)
    return write_run_tables(tables, folder, events, output or _beside(str(Path(folder).resolve()), to, table), to)


def _check(folder: str, to: str, table: str, holds: str) -> None:
    if to not in TABLE_FORMATS:
        raise ArgumentError(f"--to {to} is about one trace, and {folder} holds {holds}: name one of them")
    check_job_table(table)


def _beside(path: str, to: str, table: str) -> Path:
    """A name in the current folder, after the trace's own."""
    name = "trace" if path == "-" else Path(path).name
    stem = name.removesuffix(".gz").removesuffix(".json").removesuffix(".pt.trace")
    return Path(f"{stem}{_ENDINGS.get(to, f'.{table}.{to}')}")
