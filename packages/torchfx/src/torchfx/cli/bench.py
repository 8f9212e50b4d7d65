"""`torchfx bench`."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from torchfx.bench import suites
from torchfx.bench.plots import terminal
from torchfx.bench.process import ContenderError
from torchfx.bench.report import Report, ReportError, write
from torchfx.bench.tables import as_text, machine, remarks
from torchfx.cli.console import err, fail, out
from torchfx.errors import ArgumentError

__all__ = ["Request", "run"]

Number = TypeVar("Number", int, float)


@dataclass(frozen=True)
class Request:
    """The options as typed."""

    quick: bool
    repetitions: int | None
    limit: float
    durations: str | None
    samples: str | None
    channels: str | None
    threads: int | None
    peers: tuple[str, ...]
    as_json: bool
    output: Path


def run(suite: str, request: Request) -> int:
    """Run a suite; return 0, 1 when a target is missed or a contender refused, 2 for misuse, 3 when it cannot run."""
    try:
        request.output.mkdir(parents=True, exist_ok=True)  # before hours are spent on what could not be written
    except OSError as error:
        return fail(f"cannot write into {request.output}: {error.strerror}", 3)
    try:
        options = suites.Options(
            request.quick,
            request.repetitions,
            request.limit,
            _numbers("durations", request.durations, float),
            _numbers("samples", request.samples, int),
            _numbers("channels", request.channels, int),
            request.threads,
            request.peers,
        )
        report = _with_progress(suite, options)
        _save(report, request.output)
    except ArgumentError as error:
        return fail(error, 2)
    except (ContenderError, ReportError) as error:
        return fail(error, 3)
    if request.as_json:
        sys.stdout.write(report.to_json() + "\n")
    else:
        _show(report)
    return 0 if report.passed() else 1


def _numbers(name: str, text: str | None, kind: Callable[[str], Number]) -> tuple[Number, ...] | None:
    if text is None:
        return None
    try:
        return tuple(kind(part) for part in text.split(","))
    except ValueError:
        raise ArgumentError(f"--{name} must be numbers with commas between, got {text!r}") from None


def _with_progress(suite: str, options: suites.Options) -> Report:
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=err, transient=True) as progress:
        task = progress.add_task(f"bench {suite}", total=None)
        return suites.run(suite, options, lambda done, total: progress.update(task, completed=done, total=total))


def _save(report: Report, folder: Path) -> None:
    table, picture = (folder / f"{report.suite}_bench{suffix}" for suffix in (".out", ".png"))
    write(table, report.to_csv())
    written = [str(table)]
    if importlib.util.find_spec("matplotlib") is not None:
        from torchfx.bench.plots import png

        png.save(report, picture)
        written.append(str(picture))
    err.print(f"wrote {', '.join(written)}", markup=False)


def _show(report: Report) -> None:
    out.print(f"{report.suite}: {report.title}\n{report.work}\nreference: {report.baseline}", markup=False)
    out.print(machine(report), markup=False)
    out.print(f"\n{as_text(report)}\n\n{terminal.draw(report)}", markup=False)
    said = "\n".join(remarks(report))
    if said:
        out.print(f"\n{said}", markup=False)
