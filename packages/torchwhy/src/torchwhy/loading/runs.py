"""Load many runs, each a program with one or several ranks: the traces of all runs are read in one pass."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from torchwhy.errors import TraceError
from torchwhy.loading.job import LoadedJob, PendingJob
from torchwhy.loading.workers import SMALL, Thresholds, check_engine, readers, size_of
from torchwhy.ranks.folder import find_traces
from torchwhy.rules.catalogue import thresholds_by_slug
from torchwhy.wording import counted

__all__ = ["load_runs"]

_AHEAD: Final = 64
"""Runs whose summaries may be in memory because an earlier run is still being read."""


def load_runs(
    runs: dict[str, Path],
    workers: int | None = None,
    *,
    thresholds: Thresholds | None = None,
    engine: str = "processes",
    keep: bool | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[tuple[str, LoadedJob | str]]:
    """Yield the name of each run with its job, or with the reason for its absence, in the order of the runs.

    The workers read the traces of later runs while an earlier one is not finished; the summaries of at most 64 such
    runs are in memory. See `load_job` for the other arguments.

    Args:
        runs: their folders by name, each folder once.
        workers, thresholds, engine: as there.
        keep: as there, but None keeps the summaries if all runs together have more than 8 MB.
        progress: called with the number of finished runs and the number of all.

    Raises:
        ArgumentError, MissingPackageError: as `load_job`.
        TraceError: not one run can be read, or Ray cannot be started or reached.
    """
    thresholds_by_slug(thresholds)
    check_engine(engine, workers)
    sizes = [size for folder in runs.values() for size in _sizes(folder)]
    keep = sum(sizes) > SMALL if keep is None else keep
    waiting: deque[tuple[str, PendingJob | str]] = deque()
    run_of: dict[Path, PendingJob] = {}
    done, reasons = 0, []

    def finished() -> Iterator[tuple[str, LoadedJob | str]]:
        nonlocal done
        while waiting and (isinstance(run := waiting[0][1], str) or run.done == run.all):
            name, _ = waiting.popleft()
            job = run if isinstance(run, str) else _job(run, str(runs[name]))
            if isinstance(job, str):
                reasons.append(job)
            yield name, job
            done += 1
            if progress is not None:
                progress(done, len(runs))

    with readers(len(sizes), sum(sizes), workers, thresholds, engine) as reading:

        def take() -> Iterator[tuple[str, LoadedJob | str]]:
            path, summary = reading.next()
            run_of.pop(path).add(path, summary)
            yield from finished()

        for name, folder in runs.items():
            try:
                run = PendingJob(folder, thresholds, keep)
            except TraceError as error:
                waiting.append((name, str(error)))
            else:
                waiting.append((name, run))
                for path in run.missing:
                    if reading.full:
                        yield from take()
                    run_of[path] = run
                    reading.start(path)
            yield from finished()
            while len(waiting) > _AHEAD:
                yield from take()
        while waiting:
            yield from take()
    if runs and len(reasons) == len(runs):
        raise TraceError(f"not one of {counted(len(runs), 'run')} can be read: {reasons[0]}")


def _job(run: PendingJob, name: str) -> LoadedJob | str:
    try:
        return run.job(name)
    except TraceError as error:
        return str(error)


def _sizes(folder: Path) -> list[int]:
    """Bytes of each trace of a run; [] of a folder that cannot be listed, which reading it will report."""
    try:
        return [size_of(path) for path in find_traces(folder).traces]
    except TraceError:
        return []
