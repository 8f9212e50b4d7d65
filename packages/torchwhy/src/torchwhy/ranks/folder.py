"""The traces in a folder: which files they are, which are windows of one process, and whether they make one job."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from torchwhy.errors import TraceError
from torchwhy.trace.file.remote import path_of
from torchwhy.trace.file.source import Chunks
from torchwhy.trace.model.info import Info, read_info

__all__ = [
    "TraceFolder",
    "find_runs",
    "find_traces",
    "later_windows",
    "named_rank",
    "runs_in",
    "single_trace",
    "trace_files",
]

SUFFIXES: Final = (".json", ".json.gz", ".pt.trace", ".pt.trace.gz")

OTHERS: Final = (".sqlite", ".db", ".pftrace", ".perfetto-trace")
"""How files of other recorders end; they are read if a folder has no file of PyTorch."""

_RUN: Final = re.compile(r"trace(?:-(?P<window>\d+))?\.json(?:\.gz)?")
"""Names of the files of `torchwhy profile`, besides tables and facts that are JSON too; people unpack them."""

_HANDLER: Final = re.compile(r"(?P<process>.+?)\.(?P<window>\d+)\.pt\.trace\.json(?:\.gz)?")
"""Names of the files of `torch.profiler.tensorboard_trace_handler`: WORKER.NANOSECONDS.pt.trace.json, once per
window."""

_ALL: Final = "; torchwhy explain, report and export read all runs of a folder"

_RANK: Final = re.compile(r"(?i)rank[^0-9a-z]?(\d+)")


class TraceFolder(NamedTuple):
    """The files of a folder.

    Attributes:
        folder: where they are.
        traces: those that may be traces, one per process (its first window), by name.
        others: those that are something else.
    """

    folder: Path
    traces: tuple[Path, ...]
    others: tuple[Path, ...]

    @property
    def is_job(self) -> bool:
        """Whether something says that the traces are those of the ranks of one program.

        Names do that show the rank of each, or that PyTorch's handler gave to processes writing into one folder; so do
        traces that all show the same number of ranks, more than one. Where two folders have traces of one rank, they
        are of several programs.
        """
        numbers = [named_rank(path) for path in self.traces]
        if None not in numbers and len(set(numbers)) == len(numbers):
            return True
        if self._has_rank_twice(numbers):
            return False
        if all(_HANDLER.fullmatch(path.name) for path in self.traces):
            return True
        sizes = {_info(path).world_size for path in self.traces}
        return len(sizes) == 1 and (sizes.pop() or 1) > 1

    def _has_rank_twice(self, named: Sequence[int | None]) -> bool:
        """Whether a rank has traces in several folders, by their names or else by their contents."""
        folder_of: dict[int, Path] = {}
        if len({path.parent for path in self.traces}) > 1:
            for path, number in zip(self.traces, named, strict=True):
                rank = _info(path).rank if number is None else number
                if rank is not None and folder_of.setdefault(rank, path.parent) != path.parent:
                    return True
        return False


def find_traces(folder: Path) -> TraceFolder:
    """Return the files of a folder; where it has no traces itself, those of its folders (one per rank).

    Where names show that several are windows of one process, its first one counts.

    Raises:
        TraceError: there is no such folder, nothing in it may be a trace, or its folders are different runs.
    """
    if not folder.is_dir():
        raise TraceError(f"{folder} is not a folder" if folder.exists() else f"{folder} does not exist")
    try:
        traces, others = _split(_files(folder))
        if not traces:
            found = [_split(_files(path)) for path in _folders(folder)]
            traces, others = ([path for each in found for path in each[part]] for part in (0, 1))
    except OSError as error:
        raise TraceError(f"{folder} cannot be listed: {error.strerror or error}") from error
    if not traces:
        raise TraceError(f"{folder} has no traces in it (no file ends in .json, .json.gz or {', '.join(OTHERS)})")
    _refuse_runs(folder, traces)
    return TraceFolder(folder, tuple(traces), tuple(others))


def find_runs(folder: Path) -> list[Path]:
    """Return the folders of the runs at or below a folder, by name: each has one trace, or one per rank.

    A folder of traces that may be anything counts as a run: reading it says what is wrong.

    Raises:
        TraceError: there is no such folder, or one cannot be listed.
    """
    try:
        found: TraceFolder | None = find_traces(folder)
    except TraceError:
        if not folder.is_dir():
            raise
        found = None
    if found is not None and found.traces[0].parent == folder:
        return [folder]
    try:
        runs = [run for inner in _folders(folder) for run in find_runs(inner)]
    except OSError as error:
        raise TraceError(f"{folder} cannot be listed: {error.strerror or error}") from error
    if found is not None:
        parts = {path.parent for path in found.traces}
        if parts == {*runs} and (len(parts) > 1 or _RANK.search(runs[0].name)) and found.is_job:
            return [folder]
    return runs


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


def trace_files(folder: Path) -> list[Path]:
    """Return every file in a folder that has the name of a trace, by name."""
    return [path for path in _files(folder) if _looks_so(path)]


def single_trace(folder: Path) -> Path | None:
    """Return the one trace of a folder; None where it holds traces of several ranks of one program.

    Raises:
        TraceError: as `find_traces`; or the folder has several traces that nothing says to be of one program.
    """
    found = find_traces(folder)
    if len(found.traces) == 1:
        return found.traces[0]
    if found.is_job:
        return None
    raise TraceError(
        f"{folder} holds {len(found.traces)} traces, and neither they nor their names say that they are ranks of one "
        f"program: name those to read, such as {found.traces[0]}{'' if found.traces[0].parent == folder else _ALL}"
    )


def later_windows(trace: Path) -> list[Path]:
    """Return the files in the folder of a trace that hold later windows of the same process, as their names show."""
    for pattern in (_RUN, _HANDLER):
        own = _place(pattern, trace)
        if own:
            process, window = own
            others = _windows(pattern, _files(trace.parent))[process]
            return [path for number, path in sorted(others.items()) if number > window]
    return []


def named_rank(trace: Path) -> int | None:
    """The rank in the name of a file, or else in that of its folder; or None."""
    found = _RANK.search(trace.name) or _RANK.search(trace.parent.name)
    return int(found[1]) if found else None


def _info(trace: Path) -> Info:
    """Rank and number of ranks from the head of a trace; None where that lacks them, or can't be read."""
    try:
        with Chunks(trace) as chunks:
            head = next(iter(chunks), b"").decode("utf-8", "replace")
        place = head.index("{", head.index('"distributedInfo"'))
        return read_info({"distributedInfo": json.dumps(json.JSONDecoder().raw_decode(head, place)[0])})
    except (TraceError, ValueError):
        return read_info({})


def _folders(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))


def _looks_so(path: Path) -> bool:
    return path.name.lower().endswith(SUFFIXES)


def _split(files: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Files with the name of a trace, or, where none has one, those that end like one; and the others."""
    for pattern in (_RUN, _HANDLER):
        traces = [windows[min(windows)] for windows in _windows(pattern, files).values()]
        if traces:
            break
    else:
        traces = [path for path in files if _looks_so(path)]
        traces = traces or [path for path in files if path.name.lower().removesuffix(".gz").endswith(OTHERS)]
    return traces, [path for path in files if path not in traces]


def _windows(pattern: re.Pattern[str], files: Sequence[Path]) -> dict[str, dict[int, Path]]:
    """The files of each process by their number; of one packed and unpacked the packed one, which comes last."""
    found: dict[str, dict[int, Path]] = {}
    for path in files:
        place = _place(pattern, path)
        if place:
            found.setdefault(place[0], {})[place[1]] = path
    return found


def _place(pattern: re.Pattern[str], path: Path) -> tuple[str, int] | None:
    """The process and the number of the window in a name."""
    name = pattern.fullmatch(path.name)
    return (name.groupdict().get("process", ""), int(name["window"] or 0)) if name else None


def _refuse_runs(folder: Path, traces: Sequence[Path]) -> None:
    """Folders that `torchwhy profile` wrote one after the other are no ranks of one program."""
    runs = [path.parent for path in traces if path.parent != folder and (path.parent / "run.json").is_file()]
    if len(traces) > 1 and any(not re.fullmatch(r"rank\d+", run.name) for run in runs):
        names = ", ".join(run.name for run in runs[:5]) + (", ..." if len(runs) > 5 else "")
        raise TraceError(f"{folder} holds the folders of several runs, name one: {names}{_ALL}")
