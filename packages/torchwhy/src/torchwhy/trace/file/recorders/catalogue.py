"""Which recorder wrote a file, by how it begins. A recorder is a module in this folder and an entry here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from torchwhy.errors import TraceError
from torchwhy.trace.file.recorders.database import MAGIC, opened
from torchwhy.trace.file.recorders.nsight_systems import NSIGHT_SYSTEMS
from torchwhy.trace.file.recorders.perfetto import looks_like_packets, translated_packets
from torchwhy.trace.file.recorders.recorder import DatabaseRecorder
from torchwhy.trace.file.recorders.rocm import ROCPROFILER
from torchwhy.trace.file.recorders.rocm_json import looks_like_rocprofiler, translated_json
from torchwhy.trace.file.recorders.trace_text import trace_text

__all__ = ["DATABASES", "translated"]

DATABASES: Final[tuple[DatabaseRecorder, ...]] = (NSIGHT_SYSTEMS, ROCPROFILER)
"""Recorders whose files are SQLite databases; the first that knows a file reads it."""


def translated(name: str, head: bytes, path: Path | None, chunks: Iterator[bytes]) -> Iterator[bytes] | None:
    """Return the text of the trace in another recorder's file, in pieces; None for what is no such file.

    Args:
        name: how messages call the file.
        head: its first bytes, unpacked.
        path: where those bytes lie as a file; None where they came out of gzip data or a pipe.
        chunks: all of its bytes, unpacked.

    Raises:
        TraceError: while the pieces are read: it is damaged, or holds nothing that a trace is made of.
    """
    if head.startswith(MAGIC):
        return _database(name, path, chunks)
    if looks_like_rocprofiler(head):
        return translated_json(name, chunks)
    if looks_like_packets(head):
        return translated_packets(name, chunks)
    return None


def _database(name: str, path: Path | None, chunks: Iterator[bytes]) -> Iterator[bytes]:
    with opened(name, path, chunks) as database:
        recorder = next((one for one in DATABASES if one.knows(database)), None)
        if recorder is None:
            known = " or ".join(one.name for one in DATABASES)
            raise TraceError(f"{name} is not a trace: it is an SQLite database, but not of {known}")
        recorder.check(database)
        yield from trace_text(recorder.name, recorder.operators, recorder.top(database), recorder.events(database))
