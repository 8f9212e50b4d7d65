"""`torchfx explain`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from torchfx.cli.streams import answer, complain, patience, say, shows_colour, shows_unicode, width, write_file
from torchfx.cli.traces import trace_in
from torchfx.errors import ArgumentError, ArgumentTypeError, TraceError
from torchfx.profiler.loading import load
from torchfx.profiler.pyproject import find_pyproject
from torchfx.profiler.report import FORMATS, Style, describe, render
from torchfx.profiler.rules.diagnose import diagnose
from torchfx.profiler.rules.finding import SEVERITIES
from torchfx.profiler.rules.settings import Settings, chosen, settings_from

__all__ = ["Request", "run"]

RECORDED: Final = ("trace.json.gz", "trace.json")
"""What `torchfx profile` calls every trace, also unpacked: the name of the folder tells more."""


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


def run(trace: str, request: Request) -> int:
    """Explain a trace; return 0, 1 for findings as severe as --fail-on, 2 for misuse, 3 for what cannot be read."""
    if request.form not in FORMATS:
        return complain(f"--format must be one of {', '.join(FORMATS)}, got {request.form!r}", 2)
    if request.fail_on is not None and request.fail_on not in SEVERITIES:
        return complain(f"--fail-on must be one of {', '.join(SEVERITIES)}, got {request.fail_on!r}", 2)
    try:
        report = _report(trace, request)
        text = render(
            report,
            request.form,
            style=_style(request),
            verbose=request.verbose,
            fail_on=request.fail_on or "medium",
        )
    except (ArgumentError, ArgumentTypeError) as error:
        return complain(error, 2)
    except TraceError as error:
        return complain(error, 3)
    except OSError as error:
        return complain(f"cannot read {error.filename or trace}: {error.strerror or error}", 3)
    try:
        answer(text) if request.output is None else write_file(request.output, text)
    except OSError as error:
        return complain(f"cannot write {request.output or 'to stdout'}: {error.strerror or error}", 3)
    return _status(report, request.fail_on)


def _report(trace: str, request: Request) -> dict[str, Any]:
    settings = _settings(request)
    rules = chosen(settings)
    path = trace_in(trace, "explaining")
    with patience(f"reading {trace}"):
        if path is None:
            return _job_report(trace, request, settings)
        loaded = load(path, steps=request.steps)
        diagnosis = diagnose(loaded, rules=rules, thresholds=settings.thresholds)
        asked = tuple(rule.code for rule in rules if rule.on == "trace")
        name = Path(trace).resolve().name if path != trace and Path(path).name in RECORDED else ""
        return describe(loaded, diagnosis, asked, name)


def _job_report(folder: str, request: Request, settings: Settings) -> dict[str, Any]:
    from torchfx.profiler.ranks.job import load_job
    from torchfx.profiler.report.job import describe_job

    if request.steps is not None:
        raise ArgumentError(f"--steps chooses steps of one trace, and {folder} has those of several ranks")
    rules = chosen(settings)
    job = load_job(folder, thresholds=settings.thresholds)
    if not job.numbered:
        say(f"nothing tells the ranks of the traces in {folder}: if they are not of one program, explain one at a time")
    asked = tuple(rule.code for rule in rules)
    return describe_job(job, job.diagnose(asked) if asked else (), asked)


def _settings(request: Request) -> Settings:
    """What the command line says goes before what the file says; both lists of what to ignore count."""
    kept = settings_from(find_pyproject(Path.cwd()))
    select = _split(request.select) or kept.select
    return Settings(select, (*kept.ignore, *_split(request.ignore)), kept.thresholds)


def _split(labels: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(label.strip() for text in labels for label in text.split(",") if label.strip())


def _style(request: Request) -> Style:
    if request.output is not None:
        return Style(width=100, unicode=True)
    return Style(width(), shows_colour(sys.stdout), shows_unicode(sys.stdout))


def _status(report: dict[str, Any], fail_on: str | None) -> int:
    if fail_on is None:
        return 0
    serious = SEVERITIES[SEVERITIES.index(fail_on) :]
    return int(any(finding["severity"] in serious for finding in report["findings"]))
