"""Read a trace, or a part of it, from wherever it is."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, TypeVar

from torchwhy.errors import ArgumentError, ArgumentTypeError, TraceError
from torchwhy.ranks.folder import find_traces, named_rank, single_trace, trace_files
from torchwhy.trace.compile_log.log import CompileLog, load_compile_log, log_beside
from torchwhy.trace.file.columns import ARGUMENTS
from torchwhy.trace.file.origin import KeptInput, Origin
from torchwhy.trace.file.remote import path_of
from torchwhy.trace.file.scanning import scan
from torchwhy.trace.file.source import Source
from torchwhy.trace.model.selection import select as select_events
from torchwhy.trace.model.trace import Trace

__all__ = ["read_trace"]

T = TypeVar("T", bound=Trace)

KINDS: Final = ("int", "float", "text")

OF_LAUNCHES: Final = {"kernel": "text"}
"""What launches in a capture show, besides the usual arguments: HIP's have the name of their kernel."""


def read_trace(
    source: Source,
    kind: type[T],
    *,
    window: tuple[float, float] | None = None,
    steps: str | int | Iterable[int] | None = None,
    categories: Iterable[str] | None = None,
    columns: Mapping[str, str] | Iterable[str] | None = None,
    capture: str | os.PathLike[str] | None = None,
    compile_log: str | os.PathLike[str] | None = None,
) -> T:
    """Read a trace as `torchwhy.load` does, which explains the arguments.

    Args:
        source, window, steps, categories, columns, capture, compile_log: as there.
        kind: `LoadedTrace`, or `Trace` for those who need no tables: importing them takes longer than a small trace.
    """
    folder = path_of(source) if isinstance(source, str | os.PathLike) and os.fspath(source) != "-" else None
    if folder is not None and folder.is_dir():
        single = single_trace(folder)
        if single is None:
            one = find_traces(folder).traces[0]
            raise TraceError(
                f"{source} holds the traces of several ranks: load_job reads them all, load one such as {one}"
            )
        source = single
    wanted = {**_extra(columns), **ARGUMENTS}
    if isinstance(source, str | os.PathLike) and os.fspath(source) == "-":
        kept = KeptInput()
        everything = scan(kept, wanted)
        origin = kept.origin()
    else:
        origin = Origin.of(source)
        everything = scan(source, wanted)
    part = select_events(everything, window=window, steps=steps, categories=categories)
    del everything
    trace = kind(origin.name, part.columns, origin, beginning=part.beginning, part=part.window)
    trace.compile_log = _compile_log(trace, compile_log)
    if capture is None:
        return trace
    from torchwhy.trace.captures.join import join  # few traces need it, and every command would import it

    joined, captured = join(trace, part.columns, _recordings(Path(capture), trace.info.rank))
    named = kind(origin.name, joined, origin, beginning=part.beginning, part=part.window, captured=captured)
    named.compile_log = trace.compile_log
    return named


def _compile_log(trace: Trace, given: str | os.PathLike[str] | None) -> CompileLog | None:
    """The compiler's log of a trace: the one that was given, else the one in the run's folder."""
    if given is None:
        return log_beside(trace.origin.path) if trace.origin.path is not None else None
    return load_compile_log(Path(given), [lane.pid for lane in trace.events.lanes], trace.info.rank)


def _recordings(path: Path, rank: int | None) -> list[Trace]:
    """The recordings of captures in a file, or in a folder this rank's and those whose names show none."""
    keep = {**OF_LAUNCHES, **ARGUMENTS}
    if not path.is_dir():
        return [Trace(str(path), scan(path, keep))]
    found, refused = [], []
    for file in trace_files(path):
        if rank is not None and named_rank(file) not in (None, rank):
            continue
        try:
            found.append(Trace(str(file), scan(file, keep)))
        except TraceError as error:  # beside their traces, servers write other JSON
            refused.append(str(error))
    if not found:
        of_rank = f" of rank {rank}" if rank is not None else ""
        raise TraceError("; ".join([f"{path} has no trace of a capture{of_rank} in it", *refused]))
    return found


def _extra(columns: Mapping[str, str] | Iterable[str] | None) -> dict[str, str]:
    """Arguments to keep besides the usual ones, and as what."""
    if columns is None:
        return {}
    if isinstance(columns, str):
        columns = (columns,)
    found = dict(columns) if isinstance(columns, Mapping) else dict.fromkeys(columns, "text")
    for name, kind in found.items():
        if not isinstance(name, str):
            raise ArgumentTypeError(f"columns must name arguments of events, such as 'priority'; got {name!r}")
        if kind not in KINDS:
            raise ArgumentError(f"columns[{name!r}] must be one of 'int', 'float', 'text', got {kind!r}")
    return found
