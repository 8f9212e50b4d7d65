"""The traces in a folder: which files they are, and which of them are windows of one process."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from torchfx.errors import TraceError

__all__ = ["later_windows", "traces_in"]

SUFFIXES: Final = (".json", ".json.gz", ".pt.trace", ".pt.trace.gz")

_RUN: Final = re.compile(r"trace(?:-(?P<window>\d+))?\.json(?:\.gz)?")
"""What `torchfx profile` writes, beside tables and facts that are JSON too; people unpack it."""

_HANDLER: Final = re.compile(r"(?P<process>.+?)(?:\.(?P<window>\d+))?\.pt\.trace\.json(?:\.gz)?")
"""What `torch.profiler.tensorboard_trace_handler` writes: WORKER.NANOSECONDS.pt.trace.json, once per window."""


def traces_in(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return the files that may be traces, and those that are something else, each by name.

    Where names tell that several are windows of one process, its first one counts. Where the folder has no traces
    itself, its folders are looked into (one per rank).

    Raises:
        TraceError: there is no such folder, nothing in it may be a trace, or its folders are different runs.
    """
    if not folder.is_dir():
        raise TraceError(f"{folder} is no folder" if folder.exists() else f"{folder} does not exist")
    try:
        traces, rest = _split(_files(folder))
        if not traces:
            inner = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
            found = [_split(_files(path)) for path in inner]
            traces, rest = ([path for each in found for path in each[part]] for part in (0, 1))
    except OSError as error:
        raise TraceError(f"{folder} cannot be listed: {error.strerror or error}") from error
    if not traces:
        raise TraceError(f"{folder} has no traces in it (no file ends in .json or .json.gz)")
    _refuse_runs(folder, traces)
    return traces, rest


def later_windows(trace: Path) -> list[Path]:
    """Return the files beside a trace that hold later windows of the same process, as their names tell."""
    for pattern in (_RUN, _HANDLER):
        own = _place(pattern, trace)
        if own:
            process, window = own
            others = _windows(pattern, _files(trace.parent))[process]
            return [path for number, path in sorted(others.items()) if number > window]
    return []


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))


def _split(files: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Files with the name of a trace, or, where none has one, those that end like one; and the others."""
    for pattern in (_RUN, _HANDLER):
        traces = [windows[min(windows)] for windows in _windows(pattern, files).values()]
        if traces:
            break
    else:
        traces = [path for path in files if path.name.lower().endswith(SUFFIXES)]
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
    """The process and the number of the window that a name tells."""
    name = pattern.fullmatch(path.name)
    return (name.groupdict().get("process", ""), int(name["window"] or 0)) if name else None


def _refuse_runs(folder: Path, traces: Sequence[Path]) -> None:
    """Folders that `torchfx profile` wrote one after the other are no ranks of one program."""
    runs = [path.parent for path in traces if path.parent != folder and (path.parent / "run.json").is_file()]
    if len(traces) > 1 and any(not re.fullmatch(r"rank\d+", run.name) for run in runs):
        names = ", ".join(run.name for run in runs[:5]) + (", ..." if len(runs) > 5 else "")
        raise TraceError(f"{folder} holds the folders of several runs, name one: {names}")
