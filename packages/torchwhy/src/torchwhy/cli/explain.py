"""`torchwhy explain`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from torchwhy.cli.console import answer, complain, patience, say, write_file
from torchwhy.cli.documents import terminal_style
from torchwhy.cli.jobs import READING, Reading, describe_all, read_job
from torchwhy.cli.traces import trace_in
from torchwhy.device_peaks import peaks_of
from torchwhy.errors import ArgumentError, ArgumentTypeError, MissingPackageError, TraceError
from torchwhy.finding import SEVERITIES
from torchwhy.hangs.dumps import dump_files
from torchwhy.loading.read import read_trace
from torchwhy.present.document import Document, Findings
from torchwhy.present.explanation import explanation
from torchwhy.present.formats import check_format, render
from torchwhy.present.options import Options
from torchwhy.present.style import IN_A_FILE, Style
from torchwhy.pyproject import SettingsFileError, find_pyproject
from torchwhy.ranks.folder import runs_in
from torchwhy.report.trace_report import TraceReport, describe
from torchwhy.rules.diagnose import diagnose
from torchwhy.rules.settings import Settings, chosen, settings_from
from torchwhy.trace.model.trace import Trace

__all__ = ["Reading", "Request", "TableChoice", "run", "trace_name"]

RECORDED: Final = ("trace.json.gz", "trace.json")
"""The name of every trace of `torchwhy profile`, also unpacked: the name of the folder says more."""


@dataclass(frozen=True)
class TableChoice:
    """Which table, in which order, how much of it."""

    name: str
    sort: str | None = None
    limit: int = 20
    by_shape: bool = False
    by_stack: int = 0


@dataclass(frozen=True)
class Request:
    """The options as given."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    form: str = "text"
    fail_on: str | None = None
    verbose: bool = False
    steps: str | None = None
    output: Path | None = None
    table: TableChoice | None = None
    device: str | None = None
    capture: str | None = None
    compile_log: str | None = None
    tokens: int | None = None
    price_per_kwh: float | None = None
    reading: Reading = READING


def run(traces: Sequence[str], request: Request) -> int:
    """Explain traces; return 0, 1 for findings as severe as --fail-on, 2 for misuse, 3 for what cannot be read."""
    if request.fail_on is not None and request.fail_on not in SEVERITIES:
        return complain(f"--fail-on must be one of {', '.join(SEVERITIES)}, got {request.fail_on!r}", 2)
    if request.price_per_kwh is not None and not request.price_per_kwh >= 0:
        return complain(f"--price-per-kwh must be >= 0, got {request.price_per_kwh:g}", 2)
    try:
        check_format(request.form)
        options = Options(_style(request), request.verbose, request.fail_on or "medium")
        options = options.within(request.tokens, request.form)
        documents = [_document(trace, request, alone=len(traces) == 1) for trace in traces]
    except (ArgumentError, ArgumentTypeError) as error:
        return complain(error, 2)
    except (TraceError, SettingsFileError, MissingPackageError) as error:
        return complain(error, 3)
    except OSError as error:
        return complain(f"cannot read {error.filename or ', '.join(traces)}: {error.strerror or error}", 3)
    text = render(documents, request.form, options)
    try:
        answer(text) if request.output is None else write_file(request.output, text)
    except OSError as error:
        return complain(f"cannot write {request.output or 'to stdout'}: {error.strerror or error}", 3)
    return _status(documents, request.fail_on)


def _document(trace: str, request: Request, *, alone: bool) -> Document:
    with patience(f"reading {trace}"):
        if dump_files(Path(trace)):
            return _hang(trace, request)
        runs = runs_in(trace)
        if runs:
            return _runs(trace, runs, request)
    path = trace_in(trace, "explaining")
    with patience(f"reading {trace}"):
        if path is None:
            return _job(trace, request)
        if request.table is not None:
            return _table(path, request, request.table)
        return explanation(_report(path, trace_name(trace, path, alone=alone), request))


def _hang(path: str, request: Request) -> Document:
    """The report on a flight recorder's dumps; options about traces do not apply to them."""
    from torchwhy.hangs.dumps import load_dumps
    from torchwhy.present.hang_explanation import hang_explanation

    given = {
        "--table": request.table, "--steps": request.steps, "--capture": request.capture, "--device": request.device,
        "--compile-log": request.compile_log, "--select": request.select or None, "--ignore": request.ignore or None,
    }  # fmt: skip
    for option, value in given.items():
        if value is not None:
            raise ArgumentError(f"{option} is about traces, and {path} holds dumps of the flight recorder")
    return hang_explanation(load_dumps(Path(path)))


def trace_name(given: str, path: str, *, alone: bool) -> str:
    """What to call a trace: its file's name ("") if it stands alone, else as it was given; a run by its folder."""
    if path != given and Path(path).name in RECORDED:
        return Path(given).resolve().name
    return "" if alone else given


def _report(path: str, name: str, request: Request) -> TraceReport:
    settings = _settings(request)
    loaded = read_trace(path, Trace, steps=request.steps, capture=request.capture, compile_log=request.compile_log)
    loaded.given_peaks = peaks_of(loaded, request.device)
    diagnosis = diagnose(loaded, rules=chosen(settings), thresholds=settings.thresholds)
    return describe(loaded, diagnosis, name, thorough=request.verbose, price_per_kwh=request.price_per_kwh)


def _table(path: str, request: Request, choice: TableChoice) -> Document:
    from torchwhy.loading.trace import load
    from torchwhy.questions.tables import table_document

    trace = load(path, steps=request.steps, capture=request.capture, compile_log=request.compile_log)
    trace.given_peaks = peaks_of(trace, request.device)
    return table_document(
        trace, choice.name, sort=choice.sort, limit=choice.limit, by_shape=choice.by_shape, by_stack=choice.by_stack,
        option=True,
    )  # fmt: skip


def _job(folder: str, request: Request) -> Document:
    from torchwhy.present.job_explanation import job_explanation
    from torchwhy.report.job_report import describe_job

    _refuse(request, f"{folder} holds traces of several ranks")
    settings = _settings(request)
    rules = chosen(settings)
    job = read_job(folder, request.reading, settings.thresholds)
    if not job.numbered:
        say(f"the traces in {folder} have no rank numbers: if they are not of one program, explain one at a time")
    asked = tuple(rule.code for rule in rules)
    return job_explanation(describe_job(job, job.diagnose(asked) if asked else (), asked))


def _runs(folder: str, runs: dict[str, Path], request: Request) -> Document:
    """Which runs of a folder stand out."""
    from torchwhy.present.runs_explanation import standing_out
    from torchwhy.report.runs_report import describe_runs

    _refuse(request, f"{folder} holds several runs")
    if request.fail_on is not None:
        raise ArgumentError(f"--fail-on is about the findings of one run, and {folder} holds several")
    return standing_out(describe_runs(folder, *describe_all(runs, request.reading, _settings(request))))


def _refuse(request: Request, holds: str) -> None:
    """Refuse options that are about one trace."""
    given = {"--table": request.table, "--capture": request.capture, "--compile-log": request.compile_log}
    for option, value in given.items():
        if value is not None:
            raise ArgumentError(f"{option} is about one trace, and {holds}")
    if request.steps is not None:
        raise ArgumentError(f"--steps chooses steps of one trace, and {holds}")


def _settings(request: Request) -> Settings:
    """Merge settings: the command line overrides the file, and both lists of ignored rules apply."""
    kept = settings_from(find_pyproject(Path.cwd()))
    return Settings(request.select or kept.select, (*kept.ignore, *request.ignore), kept.thresholds)


def _style(request: Request) -> Style:
    return terminal_style() if request.output is None else IN_A_FILE


def _status(documents: Sequence[Document], fail_on: str | None) -> int:
    if fail_on is None:
        return 0
    serious = SEVERITIES[SEVERITIES.index(fail_on) :]
    findings = [block for document in documents for block in document.blocks if isinstance(block, Findings)]
    return int(any(item.severity in serious for block in findings for item in block.items))
