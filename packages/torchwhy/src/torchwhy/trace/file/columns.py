"""The result of one pass over a trace file: columns of numbers and interned texts, nothing interpreted yet.

Two scanners make them, the native one (csrc) and its slow specification in Python; their results are equal.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

__all__ = [
    "ABSENT",
    "ARGUMENTS",
    "Argument",
    "Columns",
    "Flags",
    "Floats",
    "Int32",
    "Int64",
    "Repairs",
    "distinct",
    "numbered",
    "numbered_together",
]

Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]

ABSENT: Final = np.iinfo(np.int64).min
"""Stands for a number an event doesn't have (`ts`, `dur`, `id`)."""

ARGUMENTS: Final[dict[str, str]] = {
    # Links
    "correlation": "int",
    "External id": "int",
    "external id": "int",
    "Sequence number": "int",
    "Fwd thread id": "int",
    "graph id": "int",
    "graph node id": "int",
    # Where on the device
    "device": "int",
    "stream": "int",
    "context": "int",
    # Size of the work
    "bytes": "int",
    "grid": "text",
    "block": "text",
    "blocks per SM": "float",
    "est. achieved occupancy %": "float",
    "registers per thread": "int",
    "shared memory": "int",
    # Operators
    "Input Dims": "text",
    "Input dims": "text",
    "Input type": "text",
    "Concrete Inputs": "text",
    "kernel_backend": "text",
    "kernel_file": "text",
    # Python
    "Python id": "int",
    "Python parent id": "int",
    "Call stack": "text",
    # Synchronisation
    "cuda_sync_kind": "text",
    "wait_on_stream": "int",
    "wait_on_cuda_event_record_corr_id": "int",
    # Copies of exporters that name them only "Memcpy"
    "copy kind": "text",
    "src kind": "text",
    "dst kind": "text",
    # Memory
    "Device Type": "int",
    "Device Id": "int",
    "Addr": "int",
    "Bytes": "int",
    "Total Allocated": "int",
    "Total Reserved": "int",
    # Collectives
    "Collective name": "text",
    "In msg nelems": "int",
    "Out msg nelems": "int",
    "dtype": "text",
    "Group size": "int",
    "Process Group Name": "text",
    "Process Group Ranks": "text",
    "Seq": "int",
    # Names of processes and threads (phase M)
    "name": "text",
    "labels": "text",
    # Values of hardware counters (phase C), which have no name there
    "": "float",
}
"""The arguments kept by default, and as what: "int", "float", or "text" (a string, or an array's JSON)."""


@dataclass(frozen=True)
class Argument:
    """One key of `args`, for the events that have it.

    Attributes:
        rows: indices of the events, ascending.
        values: int64, float64, or indices into `Columns.texts` (int32), one per row.
    """

    rows: Int32
    values: npt.NDArray[np.int64] | npt.NDArray[np.float64] | Int32


@dataclass
class Repairs:
    """Faults of the file that was read nevertheless, by kind: how often."""

    control_characters: int = 0
    invalid_utf8: int = 0
    unescaped_quotes: int = 0
    not_numbers: int = 0  # NaN, Infinity, N/A etc.; invalid times, or times out of range
    stray_commas: int = 0
    damaged_events: int = 0  # left out: nothing could be made of them
    truncated: bool = False  # the file ends before its JSON does
    truncated_gzip: bool = False
    bare_list: bool = False  # a list of events without the object around it

    @property
    def ends_early(self) -> bool:
        """Whether a part of the file is lost: what it lacks may have been there."""
        return self.truncated or self.truncated_gzip


@dataclass
class Columns:
    """The events of a file in file order.

    Attributes:
        phase: `ph` as a character code; 0 where it is missing.
        ts, dur: integer nanoseconds, `ABSENT` where missing or not a number; the decimals of the file are read as
            integers, never through a float.
        category, name: indices into `texts`; -1 where missing.
        pid, tid: indices into `texts` of what the file has, a number or a text, as text; -1 where missing.
        flow: `id` of flow events, `ABSENT` elsewhere.
        offset: where the event begins in the decompressed file, bytes.
        arguments: the kept keys of `args`.
        texts: every distinct text.
        top: the top-level keys besides `traceEvents`, as JSON text.
        size: bytes of the decompressed file.
        repairs: what was wrong with it.
    """

    phase: npt.NDArray[np.uint8]
    ts: Int64
    dur: Int64
    category: Int32
    name: Int32
    pid: Int32
    tid: Int32
    flow: Int64
    offset: Int64
    arguments: dict[str, Argument]
    texts: list[str]
    top: dict[str, str]
    size: int
    repairs: Repairs = field(default_factory=Repairs)

    def __len__(self) -> int:
        return len(self.ts)


def distinct(indices: Int32, count: int) -> npt.NDArray[np.intp]:
    """The different values of indices below `count`, ascending, without -1; by counting, not by sorting."""
    seen = np.zeros(count + 1, np.bool_)
    seen[indices] = True
    return np.flatnonzero(seen[:-1])


def numbered(indices: Int32, count: int) -> tuple[npt.NDArray[np.intp], Int32]:
    """The different values of indices from -1 to below `count`, ascending, and the place of each index among them.

    What `np.unique` answers with `return_inverse`, by counting instead of sorting.
    """
    seen = np.zeros(count + 1, np.bool_)  # the first is of -1
    seen[indices + np.int32(1)] = True
    place = np.cumsum(seen, dtype=np.int32) - np.int32(1)
    return np.flatnonzero(seen) - 1, place[indices + np.int32(1)]


def numbered_together(*columns: npt.NDArray[np.integer[Any]] | Flags) -> tuple[Int64, npt.NDArray[np.intp]]:
    """The different rows of some columns, ascending, and the place of each row among them.

    What `np.unique(np.stack(columns), axis=1, return_inverse=True)` answers, ten times faster: one column of the result
    for each different row.
    """
    order = np.lexsort(columns[::-1])
    ordered = np.stack([column[order] for column in columns]).astype(np.int64)
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    place = np.empty(len(order), np.intp)
    place[order] = np.cumsum(fresh) - 1
    return ordered[:, fresh], place
