"""`torchfx process`."""

from __future__ import annotations

from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from torchfx import spec
from torchfx.core.processor import FilterChain
from torchfx.cli.console import err, fail, out
from torchfx.errors import ArgumentError, AudioFileError
from torchfx.processing import Outcome, plan_outputs, process_files

__all__ = ["run"]


def run(paths: list[Path], effects: list[str], force: bool) -> int:
    """Process the files; return 0, 1 when some failed, 2 for misuse, 3 when none could be read."""
    if len(paths) < 2:
        return fail(f"process needs one or more inputs and an output, got {len(paths)} path", 2)
    *sources, output = paths
    try:
        chain = FilterChain(*(spec.build(text) for text in effects))
        jobs = plan_outputs(sources, output)
    except (ArgumentError, TypeError) as error:
        return fail(error, 2)
    except AudioFileError as error:
        return fail(error, 3)

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=len(jobs) == 1) as progress:
        task = progress.add_task("processing", total=len(jobs))
        outcomes = []
        for outcome in process_files(jobs, chain, overwrite=force):
            _report(outcome)
            outcomes.append(outcome)
            progress.advance(task)
    return _status(outcomes)


def _report(outcome: Outcome) -> None:
    if outcome.error is not None:
        fail(outcome.error, 1)
        return
    for warning in outcome.warnings:
        err.print(f"warning: {warning}", markup=False)
    out.print(f"{outcome.source} -> {outcome.target} ({outcome.duration_s:.2f} s)", markup=False)


def _status(outcomes: list[Outcome]) -> int:
    errors = [outcome.error for outcome in outcomes if outcome.error is not None]
    if not errors:
        return 0
    if len(errors) < len(outcomes):
        return 1
    return 3 if all(isinstance(error, AudioFileError) for error in errors) else 2 if len(errors) == 1 else 1
