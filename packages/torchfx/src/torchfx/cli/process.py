"""`torchfx process`, `torchfx convert`, `torchfx features` and `torchfx watch`."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torchfx import distributed
from torchfx.audio_io import LOSSY
from torchfx.cli.console import complain, line, say
from torchfx.cli.request import Request
from torchfx.distributed import Outcome, Plan, Recipe, Report
from torchfx.distributed.sources import output_format
from torchfx.errors import ArgumentError, AudioFileError

__all__ = ["run", "watch"]


def run(paths: list[str], request: Request, command: str = "process") -> int:
    """Process the files; return 0, 1 when some failed or hold NaNs, 2 for misuse, 3 when none could be read."""
    if len(paths) < 2:
        return complain(f"{command} needs one or more inputs and an output, got {len(paths)} path", 2)
    chosen = (request.effect or None, request.rate, request.preset, request.loudness, request.true_peak)
    if command == "process" and all(each is None for each in chosen):
        needs = "--effect, --preset, --rate, --loudness or --true-peak"
        return complain(f"process needs {needs}; torchfx convert needs none", 2)
    *sources, output = paths
    try:
        recipe = _recipe(request, output)
        if command == "features" and not recipe.gives_features:
            found = recipe if recipe.effects else "no effects; --preset whisper, or -e mfcc, for example"
            return complain(f"features needs a preset or effects that end in features, got {found}", 2)
        if request.album:
            songs = [job.source for job in distributed.plan(sources, output, recipe, recursive=request.recursive).jobs]
            recipe = distributed.album_recipe(songs, recipe, workers=request.jobs)
        plan = distributed.plan(
            sources, output, recipe, recursive=request.recursive, overwrite=request.force,
            resume=request.skip_existing,
        )  # fmt: skip
        if request.dry_run:
            return _show(plan)
        return _done(plan, request)
    except (ArgumentError, TypeError) as error:
        return complain(error, 2)
    except AudioFileError as error:
        return complain(error, 3)


def _recipe(request: Request, output: str) -> Recipe:
    """Return the recipe. The format of a preset, with its bits or bit rate, is only a default."""
    chosen: dict[str, Any] = distributed.preset(request.preset) if request.preset else {}
    form = request.format or output_format(output)
    if form is not None:
        chosen.pop("format", None)
        chosen.pop("bits" if form.upper() in LOSSY else "bitrate", None)
    effects = (*chosen.pop("effects", ()), *(request.effect or ()))
    given = {
        name: getattr(request, name) for name in ("rate", "loudness", "true_peak", "format", "bits", "bitrate", "raw")
    }
    return Recipe(effects, **chosen | {name: value for name, value in given.items() if value is not None})


def _show(plan: Plan) -> int:
    line(f"chain: {plan.recipe}")
    for job in plan.jobs:
        refused = "; exists already, --force overwrites it" if plan.will_fail(job) else ""
        line(f"{job.source} -> {job.target}{refused}")
    for outcome in plan.refused:
        line(f"{outcome.error}")
    for job, reason in plan.skipped:
        line(f"{job.source} skipped, {job.target} is {'done' if reason == 'done' else 'there'}")
    return 0


def _done(plan: Plan, request: Request) -> int:
    outcomes = []
    report = Report(skipped=len(plan.skipped))
    with _ended_by_signals(), _progress(len(plan.jobs) + len(plan.refused)) as advance:
        for outcome in plan.run(request.engine, request.jobs):
            _report(outcome)
            report.add(outcome)
            outcomes.append(outcome)
            advance(report)
    if plan.total > 1:
        say(str(report))
    if request.failures is not None:
        report.save_failures(request.failures)
    return _status(outcomes, request.allow_nan, len(plan.skipped))


def watch(folder: str, output: str, request: Request, every: float) -> int:
    """Process what arrives until a signal ends it; return 130, or 2 for misuse, 3 where the folder cannot be read."""
    try:
        recipe = _recipe(request, f"{output}/")
        arrivals = distributed.Arrivals(folder, request.recursive, output)
        while True:
            arrived = arrivals.look()
            if arrived:
                plan = distributed.plan(arrived, f"{output}/", recipe, overwrite=request.force, resume=True)
                for job, reason in plan.skipped:
                    if reason == "exists":
                        complain(f"{job.source}: {job.target} exists already; --force overwrites it", 1)
                if plan.jobs or plan.refused:
                    _done(plan, request)
            time.sleep(every)
    except (ArgumentError, TypeError) as error:
        return complain(error, 2)
    except AudioFileError as error:
        return complain(error, 3)
    except KeyboardInterrupt:
        return 130


@contextmanager
def _progress(files: int) -> Iterator[Callable[[Report], object]]:
    """Show a bar with the throughput where there is a terminal and more than one file."""
    if files < 2 or not sys.stderr.isatty():
        yield lambda report: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    speed = TextColumn("{task.fields[speed]}")
    columns = (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), speed)
    console, lines_too = Console(stderr=True), sys.stdout.isatty()
    with Progress(*columns, console=console, transient=True, redirect_stdout=lines_too) as progress:
        task = progress.add_task("", total=files, speed="")
        yield lambda report: progress.update(task, advance=1, speed=report.speed)


def _report(outcome: Outcome) -> None:
    job = outcome.job
    if outcome.error is not None:
        text = str(outcome.error)
        is_named = job.source == "-" or job.source in text or job.target in text
        complain(text if is_named else f"{job.source}: {text}", 1)
        return
    for warning in outcome.warnings:
        say(f"warning: {warning}")
    for path, found in ((job.source, outcome.not_finite_in), (job.target, outcome.not_finite_out)):
        if found is not None:
            count, first = found
            what = "values" if outcome.details and path == job.target else "samples"
            say(f"warning: {path}: {count} {what} are NaN or infinite, the first in frame {first}")
    if job.target != "-":
        details = f": {outcome.details}" if outcome.details else ""
        line(f"{job.source} -> {job.target} ({outcome.duration_s:.2f} s{details})")


def _status(outcomes: list[Outcome], allow_nan: bool, skipped: int) -> int:
    errors = [outcome.error for outcome in outcomes if outcome.error is not None]
    if not errors:
        return 1 if any(outcome.not_finite for outcome in outcomes) and not allow_nan else 0
    if len(errors) < len(outcomes) + skipped:
        return 1
    return 3 if all(isinstance(error, AudioFileError) for error in errors) else 2 if len(errors) == 1 else 1


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the work as an exception does, so that no temporary file is left.

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
