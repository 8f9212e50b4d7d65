"""A part of a trace file as a separate file, for viewers: its events as they stand there."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from torchwhy.errors import ArgumentError
from torchwhy.trace.file.columns import Columns, Flags
from torchwhy.trace.file.origin import Origin
from torchwhy.trace.file.reread import read_events
from torchwhy.trace.file.scanning import scan
from torchwhy.trace.file.writing import whole_file
from torchwhy.trace.model.selection import select

__all__ = ["Cut", "cut", "top_of"]

FLOW_START: Final = ord("s")
FLOW: Final = (FLOW_START, ord("t"), ord("f"))


@dataclass(frozen=True)
class Cut:
    """The written file.

    Attributes:
        file: the trace it is a part of.
        output: the new file.
        events: how many it has.
        of_events: how many the trace has.
        bytes: size of the new file.
    """

    file: str
    output: str
    events: int
    of_events: int
    bytes: int


def cut(
    source: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    window: tuple[float, float] | None = None,
    steps: str | int | Iterable[int] | None = None,
    categories: Iterable[str] | None = None,
) -> Cut:
    """Write a part of a trace as a Chrome trace.

        profiler.cut("trace.json.gz", "small.json.gz", steps="5-7")

    Besides the events that `load` keeps for the same arguments, the file has all top-level keys, the names of processes
    and threads, and the arrows that begin in the part. Events are copied unchanged, byte by byte; those of a
    damaged file are written as they were understood. The file appears whole or not at all.

    Args:
        source: path of a trace, plain or gzip.
        output: the new file; compressed where its name ends in .gz.
        window, steps, categories: which part; see `torchwhy.load`.

    Raises:
        TraceError: the trace cannot be read.
        ArgumentError, ArgumentTypeError: no part is chosen, the trace has no such part, or it is the output.
        OSError: the output cannot be written.
    """
    if window is None and steps is None and categories is None:
        raise ArgumentError("at least one of steps, window and categories must be given")
    target, origin = Path(output), Origin.of(source)
    columns = scan(source)
    path = origin.unchanged()
    if target.exists() and target.samefile(path):
        raise ArgumentError(f"output must differ from the trace's file, got {os.fspath(output)!r}")
    part = select(columns, window=window, steps=steps, categories=categories)
    rows = np.flatnonzero(_arrows(columns, np.isin(columns.offset, part.columns.offset)))
    size = _write(path, columns, rows, target)
    return Cut(origin.name, os.fspath(output), len(rows), len(columns), size)


def _arrows(columns: Columns, keep: Flags) -> Flags:
    """Keep arrows whole or not at all: all points of those whose start is kept, no point of others."""
    points = np.isin(columns.phase, FLOW)
    if not points.any():
        return keep
    arrows = np.stack((columns.flow[points], columns.category[points].astype(np.int64)))
    known, which = np.unique(arrows, axis=1, return_inverse=True)
    which = which.reshape(-1)
    begun = np.zeros(known.shape[1], np.bool_)
    begun[which[(keep & (columns.phase == FLOW_START))[points]]] = True
    found = keep.copy()
    found[points] = begun[which]
    return found


def _write(source: Path, columns: Columns, rows: npt.NDArray[np.intp], target: Path) -> int:
    """Write some events and all keys of the top level; return the size of the file."""
    with whole_file(target) as file:
        file.write(top_of(columns))
        for i, event in enumerate(filter(None, read_events(source, columns, rows))):
            file.write((b",\n" if i else b"\n") + event)
        file.write(b"\n]}\n")
    return target.stat().st_size


def top_of(columns: Columns) -> bytes:
    """Return the beginning of a trace with all keys of another's top level, up to the first event."""
    keys = "".join(f"{json.dumps(key)}: {value},\n" for key, value in columns.top.items())
    return f'{{{keys}"traceEvents": ['.encode()
