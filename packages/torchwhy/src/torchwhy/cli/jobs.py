"""Reading the ranks of a job for a command: with progress on stderr, which may be stopped."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from torchwhy.cli.console import say, warnings_said

if TYPE_CHECKING:
    from torchwhy.loading.job import LoadedJob

__all__ = ["READING", "Reading", "read_job"]

_EVERY_S: Final = 10.0


@dataclass(frozen=True)
class Reading:
    """How the ranks are read: the options as given."""

    workers: int | None = None
    engine: str = "processes"
    keep: bool | None = None


READING: Final = Reading()
"""Without options."""


def read_job(folder: str, reading: Reading, thresholds: Mapping[str, Mapping[str, Any]] | None = None) -> LoadedJob:
    """Read all ranks of a job; say every 10 seconds on stderr how many are done, and how many were when it is stopped.

    Raises:
        TraceError, ArgumentError, MissingPackageError: as `load_job`.
        KeyboardInterrupt: Ctrl-C.
    """
    from torchwhy.loading.job import load_job  # a command about one trace does without it

    began = said = time.monotonic()
    state = (0, 0)

    def progress(done: int, of: int) -> None:
        nonlocal said, state
        state = done, of
        now = time.monotonic()
        if now - said >= _EVERY_S:
            said = now
            say(f"{done:,} of {of:,} traces read, {now - began:.0f} s")

    try:
        with warnings_said():
            return load_job(
                folder, workers=reading.workers, thresholds=thresholds,
                engine=reading.engine, keep=reading.keep, progress=progress,
            )  # fmt: skip
    except KeyboardInterrupt:
        done, of = state
        say(f"stopped: {done:,} of {of:,} traces were read; if summaries are kept (--keep), the next run continues")
        raise
