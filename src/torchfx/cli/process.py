"""`torchfx process`."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from torchfx import spec
from torchfx.cli.console import err, fail, out
from torchfx.core.processor import FilterChain
from torchfx.errors import ArgumentError, AudioFileError
from torchfx.processing import Outcome, plan_outputs, process_files

__all__ = ["run"]


def run(paths: list[str], effects: list[str], force: bool, allow_nan: bool, rate: str | None = None) -> int:
    """Process the files; return 0, 1 when some failed or hold NaNs, 2 for misuse, 3 when none could be read."""
    if len(paths) < 2:
        return fail(f"process needs one or more inputs and an output, got {len(paths)} path", 2)
    if not effects and rate is None:
        return fail("process needs --effect, --rate or both", 2)
    *sources, output = paths
    last = [] if rate is None else [f"resample:{rate}"]
    try:
        chain = FilterChain(*(spec.build(text) for text in [*effects, *last]))
        jobs = plan_outputs([Path(source) for source in sources], output)
    except (ArgumentError, TypeError) as error:
        return fail(error, 2)
    except AudioFileError as error:
        return fail(error, 3)

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    outcomes = []
    hidden = len(jobs) == 1 or not err.is_terminal
    with _ended_by_signals(), Progress(*columns, console=err, transient=True, disable=hidden) as progress:
        task = progress.add_task("processing", total=len(jobs))
        for outcome in process_files(jobs, chain, overwrite=force):
            _report(outcome)
            outcomes.append(outcome)
            progress.advance(task)
    return _status(outcomes, allow_nan)


def _report(outcome: Outcome) -> None:
    if outcome.report is None:
        fail(outcome.error or "nothing was written", 1)
        return
    for warning in outcome.warnings:
        err.print(f"warning: {warning}", markup=False)
    for path, found in (
        (outcome.source, outcome.report.not_finite_in),
        (outcome.target, outcome.report.not_finite_out),
    ):
        if found is not None:
            count, first = found
            err.print(f"warning: {path}: {count} samples are NaN or infinite, the first in frame {first}", markup=False)
    out.print(f"{outcome.source} -> {outcome.target} ({outcome.report.duration_s:.2f} s)", markup=False)


def _status(outcomes: list[Outcome], allow_nan: bool) -> int:
    errors = [outcome.error for outcome in outcomes if outcome.error is not None]
    if not errors:
        return 1 if any(outcome.not_finite for outcome in outcomes) and not allow_nan else 0
    if len(errors) < len(outcomes):
        return 1
    return 3 if all(isinstance(error, AudioFileError) for error in errors) else 2 if len(errors) == 1 else 1


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the work as an exception does, so that no temporary file stays behind.

    A signal that is ignored stays so: `nohup` does that.
    """

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    heard = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, end) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
