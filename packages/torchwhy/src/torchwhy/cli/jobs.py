"""Reading the ranks of a job, or of many runs, for a command: with progress on stderr, which may be stopped."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from torchwhy.cli.console import say, warnings_said
from torchwhy.errors import TraceError
from torchwhy.ranks.folder import find_runs
from torchwhy.rules.settings import Settings, chosen
from torchwhy.trace.file.remote import path_of
from torchwhy.wording import counted

if TYPE_CHECKING:
    from pathlib import Path

    from torchwhy.loading.job import LoadedJob
    from torchwhy.report.runs_report import Run

__all__ = ["READING", "Reading", "describe_all", "read_job", "read_runs", "runs_in"]

_EVERY_S: Final = 10.0


@dataclass(frozen=True)
class Reading:
    """How the ranks are read: the options as given."""

    workers: int | None = None
    engine: str = "processes"
    keep: bool | None = None


READING: Final = Reading()
"""Without options."""


def runs_in(given: str) -> dict[str, Path]:
    """Return the folders of runs in a folder, by their names below it; {} where a path means one trace or job.

    Raises:
        TraceError: a folder cannot be listed.
    """
    folder = path_of(given)
    if given == "-" or not folder.is_dir():
        return {}
    found = find_runs(folder)
    if len(found) <= 1 and all(folder in (path, path.parent) for path in found):
        return {}
    names = (path.relative_to(folder).as_posix() for path in found)
    return {name.encode(errors="backslashreplace").decode(): path for name, path in zip(names, found, strict=True)}


def read_runs(
    runs: dict[str, Path], reading: Reading, thresholds: Mapping[str, Mapping[str, Any]] | None
) -> Iterator[tuple[str, LoadedJob]]:
    """Read runs one by one; say every 10 seconds on stderr how many are done, and why a run or rank is left out.

    Raises:
        TraceError: not one can be read.
        ArgumentError, MissingPackageError: as `load_runs`.
        KeyboardInterrupt: Ctrl-C.
    """
    from torchwhy.loading.runs import load_runs

    progress, reasons = _Progress("runs"), []
    with warnings_said(), progress.stopping():
        for name, job in load_runs(
            runs, workers=reading.workers, thresholds=thresholds,
            engine=reading.engine, keep=reading.keep, progress=progress,
        ):  # fmt: skip
            if isinstance(job, str):
                reasons.append(job)
                say(f"left out: {job}")
                continue
            for file, reason in job.unreadable.items():
                say(f"left out: {name}/{file}: {reason}")
            yield name, job
    if len(reasons) == len(runs):
        raise TraceError(f"not one of {counted(len(runs), 'run')} can be read: {reasons[0]}")


def describe_all(runs: dict[str, Path], reading: Reading, settings: Settings) -> tuple[list[Run], list[str]]:
    """Return the reports on runs, and the names of those that cannot be read.

    Raises:
        TraceError, ArgumentError, MissingPackageError, KeyboardInterrupt: as `read_runs`.
    """
    from torchwhy.report.runs_report import describe_run

    asked = tuple(rule.code for rule in chosen(settings))
    found = [
        describe_run(name, job, job.diagnose(asked) if asked else ())
        for name, job in read_runs(runs, reading, settings.thresholds)
    ]
    return found, sorted(runs.keys() - {run.name for run in found})


class _Progress:
    """Says every 10 seconds how many of the traces, or runs, are read."""

    def __init__(self, noun: str) -> None:
        self._noun = noun
        self._began = self._said = time.monotonic()
        self._state = (0, 0)

    def __call__(self, done: int, of: int) -> None:
        self._state = done, of
        now = time.monotonic()
        if now - self._said >= _EVERY_S:
            self._said = now
            say(f"{done:,} of {of:,} {self._noun} read, {now - self._began:.0f} s")

    @contextmanager
    def stopping(self) -> Iterator[None]:
        """Say at Ctrl-C how far reading came."""
        try:
            yield
        except KeyboardInterrupt:
            done, of = self._state
            came = f"{done:,} of {of:,} {self._noun} were read" if of else f"{self._noun} were still being looked for"
            say(f"stopped: {came}; if summaries are kept (--keep), the next run continues")
            raise


def read_job(folder: str, reading: Reading, thresholds: Mapping[str, Mapping[str, Any]] | None = None) -> LoadedJob:
    """Read all ranks of a job; say every 10 seconds on stderr how many are done, and how many were when it is stopped.

    Raises:
        TraceError, ArgumentError, MissingPackageError: as `load_job`.
        KeyboardInterrupt: Ctrl-C.
    """
    from torchwhy.loading.job import load_job  # a command about one trace does without it

    progress = _Progress("traces")
    with warnings_said(), progress.stopping():
        return load_job(
            folder, workers=reading.workers, thresholds=thresholds,
            engine=reading.engine, keep=reading.keep, progress=progress,
        )  # fmt: skip
