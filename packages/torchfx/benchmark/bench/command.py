"""The command line of the benchmarks."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from bench import suites
from bench.plots import terminal
from bench.process import ContenderError
from bench.report import Report, ReportError, write
from bench.tables import as_text, machine, remarks
from torchfx.cli.console import answer, complain, rich_console, say
from torchfx.errors import ArgumentError

__all__ = ["Request", "app", "run"]

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

Number = TypeVar("Number", int, float)

SECONDS_BETWEEN_LINES = 10.0
"""Where progress goes into a file."""


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
    only: str | None = None


def run(suite: str, request: Request) -> int:
    """Run a suite; return 0, 1 when a target is missed or a contender refused, 2 for misuse, 3 when it cannot run."""
    try:
        request.output.mkdir(parents=True, exist_ok=True)  # before hours are spent on what could not be written
    except OSError as error:
        return complain(f"cannot write into {request.output}: {error.strerror}", 3)
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
            request.only,
        )
        report = _with_progress(suite, options)
        _save(report, request.output)
    except ArgumentError as error:
        return complain(error, 2)
    except (ContenderError, ReportError) as error:
        return complain(error, 3)
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
    """Run a suite with a bar on a terminal, else with a line now and then."""
    if not sys.stderr.isatty():
        said = time.monotonic()

        def tell(done: int, total: int) -> None:
            nonlocal said
            if time.monotonic() - said >= SECONDS_BETWEEN_LINES:
                said = time.monotonic()
                say(f"bench {suite}: {done} of {total}")

        return suites.run(suite, options, tell)
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=rich_console(stderr=True), transient=True) as progress:
        task = progress.add_task(f"bench {suite}", total=None)
        return suites.run(suite, options, lambda done, total: progress.update(task, completed=done, total=total))


def _save(report: Report, folder: Path) -> None:
    table, picture = (folder / f"{report.suite}_bench{suffix}" for suffix in (".out", ".png"))
    write(table, report.to_csv())
    written = [str(table)]
    if importlib.util.find_spec("matplotlib") is not None:
        from bench.plots import png

        png.save(report, picture)
        written.append(str(picture))
    say(f"wrote {', '.join(written)}")


def _show(report: Report) -> None:
    said = "\n".join(remarks(report))
    parts = (
        f"{report.suite}: {report.title}\n{report.work}\nreference: {report.baseline}\n{machine(report)}",
        as_text(report),
        terminal.draw(report),
        said,
    )
    answer("\n\n".join(part for part in parts if part) + "\n")


@app.command()
def measure(
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="iir, fir, api, latency, threshold or targets.")],
    quick: Annotated[bool, typer.Option("--quick", help="Fewer and smaller signals, fewer rounds.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables and drawings.")] = False,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the .out (CSV) and .png.")] = Path(),
    peer: Annotated[
        list[str] | None,
        typer.Option("--peer", metavar="NAME=PYTHON", help="Another Python whose libraries take part; repeatable."),
    ] = None,
    durations: Annotated[str | None, typer.Option("--durations", help="Seconds, as in 1,5,60.")] = None,
    samples: Annotated[str | None, typer.Option("--samples", help="Block sizes or lengths, as in 64,256.")] = None,
    channels: Annotated[str | None, typer.Option("--channels", help="As in 1,2,8.")] = None,
    repetitions: Annotated[int | None, typer.Option("--repetitions", "-r", help="Rounds; for latency, calls.")] = None,
    limit: Annotated[float, typer.Option("--limit", help="Seconds a signal, after three rounds.")] = 60.0,
    threads: Annotated[int | None, typer.Option("--threads", help="PyTorch's threads.")] = None,
    only: Annotated[str | None, typer.Option("--only", help="Promises that hold this regular expression.")] = None,
) -> None:
    """Measure this machine: equality with SciPy first, then interleaved rounds, medians with quartiles.

    iir, fir and api run whole signals, latency small blocks; threshold finds
    where splitting a signal pays; targets measures the promised ratios, those of
    backward passes too (exit status 1 when one is missed).
    """
    options = Request(
        quick, repetitions, limit, durations, samples, channels, threads, tuple(peer or ()), as_json, output, only
    )
    raise typer.Exit(run(suite, options))
