"""Load many runs, one after the other: each a program with one or several ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from torchwhy.errors import TraceError
from torchwhy.loading.job import LoadedJob, load_job
from torchwhy.loading.workers import SMALL, Readers, Thresholds, check_engine, connected, size_of
from torchwhy.processors import usable_processors
from torchwhy.ranks.folder import find_traces

__all__ = ["load_runs"]


def load_runs(
    runs: dict[str, Path],
    workers: int | None = None,
    *,
    thresholds: Thresholds | None = None,
    engine: str = "processes",
    keep: bool | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[tuple[str, LoadedJob | str]]:
    """Yield the name of each run with its job, or with the reason for its absence.

    One job is in memory at a time. The processes that read are started once. See `load_job` for the other
    arguments.

    Args:
        runs: their folders by name.
        workers, thresholds, engine: as there.
        keep: as there, but None keeps the summaries if all runs together have more than 8 MB.
        progress: called with the number of finished runs and the number of all.

    Raises:
        ArgumentError, MissingPackageError: as `load_job`.
    """
    check_engine(engine, workers)
    size = sum(map(_size, runs.values()))
    keep = size > SMALL if keep is None else keep
    count = usable_processors() if workers is None else workers
    session: AbstractContextManager[Readers | None] = nullcontext()
    if engine == "ray":
        session = connected(workers)
    elif size > SMALL and count > 1:
        session = Readers(count)
    with session as readers:
        for done, (name, folder) in enumerate(runs.items(), 1):
            try:
                yield (
                    name,
                    load_job(folder, workers=workers, thresholds=thresholds, engine=engine, keep=keep, readers=readers),
                )
            except TraceError as error:
                yield name, str(error)
            if progress is not None:
                progress(done, len(runs))


def _size(folder: Path) -> int:
    """Bytes of a run's traces; 0 of a folder that cannot be listed, which reading it will report."""
    try:
        return sum(map(size_of, find_traces(folder).traces))
    except TraceError:
        return 0
