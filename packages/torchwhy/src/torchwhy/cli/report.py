"""`torchwhy report`."""

from __future__ import annotations

import re
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from torchwhy.cli.console import complain, patience, tell, write_file
from torchwhy.cli.explain import trace_name
from torchwhy.cli.jobs import READING, Reading, describe_all, read_job
from torchwhy.cli.traces import trace_in
from torchwhy.diffing import diff
from torchwhy.errors import ArgumentError, ArgumentTypeError, MissingPackageError, TraceError
from torchwhy.loading.trace import load
from torchwhy.page.assemble import MAX_SIZE
from torchwhy.page.report_page import difference_page, job_page, runs_page, trace_page
from torchwhy.pyproject import SettingsFileError, find_pyproject
from torchwhy.ranks.folder import runs_in
from torchwhy.ranks.job import Job
from torchwhy.report.job_report import describe_job
from torchwhy.report.trace_report import describe
from torchwhy.rules.diagnose import diagnose
from torchwhy.rules.settings import Settings, chosen, settings_from
from torchwhy.wording import size_text

__all__ = ["Reading", "Request", "bytes_from", "run"]

_UNITS: Final = {"": 1, "k": 1e3, "kb": 1e3, "m": 1e6, "mb": 1e6, "g": 1e9, "gb": 1e9}


@dataclass(frozen=True)
class Request:
    """The options as given."""

    output: Path = Path("report.html")
    max_size: str = ""
    steps: str | None = None
    show: bool = False
    ranks: bool = False
    reading: Reading = READING


def run(traces: Sequence[str], request: Request) -> int:
    """Write the page of a trace, of a job or of two traces.

    Returns:
        0, 2 for misuse, 3 for what cannot be read or written.
    """
    try:
        size = bytes_from(request.max_size) if request.max_size else MAX_SIZE
        with patience(f"reading {' and '.join(traces)}"):
            text = _page(traces[0], request, size) if len(traces) == 1 else _compared(traces, request, size)
    except (ArgumentError, ArgumentTypeError) as error:
        return complain(error, 2)
    except (TraceError, SettingsFileError, MissingPackageError) as error:
        return complain(error, 3)
    except OSError as error:
        return complain(f"cannot read {error.filename or ' and '.join(traces)}: {error.strerror or error}", 3)
    try:
        write_file(request.output, text)
    except OSError as error:
        return complain(f"cannot write {request.output}: {error.strerror or error}", 3)
    tell(f"wrote {request.output}, {size_text(len(text.encode()))}")
    if request.show:
        webbrowser.open(request.output.resolve().as_uri())
    return 0


def bytes_from(text: str) -> int:
    """Return a size such as "8MB", "500 kB" or "1000000" in bytes.

    Raises:
        ArgumentError: it has another form.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([a-z]*)", text.strip().lower())
    if not found or found[2] not in _UNITS:
        raise ArgumentError(f"--max-size must be a size such as 8MB or 500kB, got {text!r}")
    return int(float(found[1]) * _UNITS[found[2]])


def _page(given: str, request: Request, size: int) -> str:
    runs = runs_in(given)
    path = None if runs else trace_in(given, "reporting on")
    settings = settings_from(find_pyproject(Path.cwd()))
    rules = chosen(settings)
    if runs:
        _refuse_ranks(request)
        return _of_runs(given, runs, request, settings, size)
    if path is None:
        if request.steps is not None:
            raise ArgumentError(f"--steps chooses steps of one trace, and {given} holds traces of several ranks")
        asked = tuple(rule.code for rule in rules)
        job = read_job(given, request.reading, settings.thresholds)
        pages = _rank_pages(job, request.output, settings, size) if request.ranks else {}
        of_all = describe_job(job, job.diagnose(asked) if asked else (), asked)
        return job_page(job, of_all, pages=pages, max_size=size)
    _refuse_ranks(request)
    trace = load(path, steps=request.steps)
    diagnosis = diagnose(trace, rules=rules, thresholds=settings.thresholds)
    report = describe(trace, diagnosis, trace_name(given, path, alone=True), thorough=True)
    return trace_page(trace, diagnosis, report, max_size=size)


def _of_runs(given: str, runs: dict[str, Path], request: Request, settings: Settings, size: int) -> str:
    if request.steps is not None:
        raise ArgumentError(f"--steps chooses steps of one trace, and {given} holds several runs")
    found, missing = describe_all(runs, request.reading, settings)
    return runs_page(given, found, missing, max_size=size)


def _rank_pages(job: Job, output: Path, settings: Settings, size: int) -> dict[int, str]:
    """Write the page of each rank next to the job's page, and return their addresses from there."""
    found = {}
    for rank, summary in zip(job.numbers, job.summaries, strict=True):
        trace = load(summary.file)
        diagnosis = diagnose(trace, rules=chosen(settings), thresholds=settings.thresholds)
        report = describe(trace, diagnosis, f"rank {rank}", thorough=True)
        path = output.with_name(f"{output.stem}-rank{rank}{output.suffix}")
        write_file(path, trace_page(trace, diagnosis, report, job=quote(output.name), max_size=size))
        found[rank] = quote(path.name)
    return found


def _refuse_ranks(request: Request) -> None:
    if request.ranks:
        raise ArgumentError("--ranks writes the pages of several ranks: name the folder with their traces")


def _compared(traces: Sequence[str], request: Request, size: int) -> str:
    _refuse_ranks(request)
    if len(traces) > 2:
        raise ArgumentError(f"TRACE must be one trace or folder, or two to compare, got {len(traces)}")
    if request.steps is not None:
        raise ArgumentError("--steps chooses steps of one trace, and two are given")
    found = [trace_in(path, "comparing") for path in traces]
    if found[0] is None or found[1] is None:
        raise ArgumentError("two folders of several ranks are compared by `torchwhy diff`; name one trace of each")
    settings = settings_from(find_pyproject(Path.cwd()))
    rules, thresholds = chosen(settings), settings.thresholds
    before, after = load(found[0]), load(found[1])
    difference = diff(before, after, rules=rules, thresholds=thresholds)
    return difference_page(before, after, difference, rules=rules, thresholds=thresholds, max_size=size)
