"""Reading the ranks of a job, or of many runs, for a command: with progress on stderr, which may be stopped."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from torchwhy.cli.console import say, warnings_said
from torchwhy.rules.settings import Settings, chosen

if TYPE_CHECKING:
    from pathlib import Path

    from torchwhy.loading.job import LoadedJob
    from torchwhy.report.runs_report import Run

__all__ = ["READING", "Reading", "describe_all", "read_job", "read_runs"]

_EVERY_S: Final = 10.0


@dataclass(frozen=True)
class Reading:
    """How the ranks are read: the options as given."""

    workers: int | None = None
    engine: str = "processes"
    keep: bool | None = None


READING: Final = Reading()
"""Without options."""


def read_runs(
    runs: dict[str, Path], reading: Reading, thresholds: Mapping[str, Mapping[str, Any]] | None
) -> Iterator[tuple[str, LoadedJob]]:
    """Read runs one by one; say every 10 seconds on stderr how many are done, and why a run or rank is left out.

    Raises:
        TraceError, ArgumentError, MissingPackageError: as `load_runs`.
        KeyboardInterrupt: Ctrl-C.
    """
    from torchwhy.loading.runs import load_runs

    progress = _Progress("runs")
    with warnings_said(), progress.stopping():
        for name, job in load_runs(
            runs, workers=reading.workers, thresholds=thresholds,
            engine=reading.engine, keep=reading.keep, progress=progress,
        ):  # fmt: skip
            if isinstance(job, str):
                say(f"left out: {job}")
                continue
            for file, reason in job.unreadable.items():
                say(f"left out: {name}/{file}: {reason}")
            yield name, job


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
