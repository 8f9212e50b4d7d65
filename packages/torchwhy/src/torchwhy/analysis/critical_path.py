"""The critical path in sums: what each thread and stream adds to the length of the window."""

from __future__ import annotations

import msgspec
import numpy as np

from torchwhy.analysis.breakdown import Stretch, longest_of
from torchwhy.trace.derived.critical import Segments, critical_segments
from torchwhy.trace.file.columns import Int32, Int64
from torchwhy.trace.model.device import devices_of, streams_of
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.trace.tables.kernels import labels

__all__ = ["PathPart", "critical_parts"]


class PathPart(msgspec.Struct, frozen=True):
    """The time of one lane on the critical path.

    Attributes:
        where: the thread, or the device and stream.
        what: "device", "device gap", "launch", "host" or "python", as in `trace.critical_path()`.
        time_us, share: of the window; all parts add up to it.
        runs: stretches without another lane or kind between; pieces: events in them.
        mostly: the event that takes the most of it, and mostly_us its time.
        longest: the longest runs, in order of time.
    """

    where: str
    what: str
    time_us: float
    share: float
    runs: int
    pieces: int
    mostly: str
    mostly_us: float
    longest: tuple[Stretch, ...] = ()


def critical_parts(trace: Trace) -> tuple[PathPart, ...]:
    """Return the parts of the path, the longest first."""
    found = trace.derived(critical_segments)
    if not len(found):
        return ()
    place, names = _places(trace, found)
    code = place * len(found.kinds) + found.kind
    spent = found.ends - found.starts
    begins = np.concatenate(([True], code[1:] != code[:-1]))
    parts = []
    for one in np.unique(code).tolist():
        mine = np.flatnonzero(code == one)
        which = np.unique(_names(trace, found.row[mine]), return_inverse=True)[1].reshape(-1)
        sums = np.bincount(which, weights=spent[mine])
        most = int(found.row[mine[np.argmax(sums[which] == sums.max())]])  # of equal ones the first
        total = int(spent[mine].sum())
        parts.append(
            PathPart(
                names[one // len(found.kinds)],
                found.kinds[one % len(found.kinds)],
                total / 1000,
                total / max(trace.window.end - trace.window.start, 1),
                int(begins[mine].sum()),
                len(mine),
                labels(trace, np.array([most], np.int32))[0],
                float(sums.max()) / 1000,
                longest_of(Intervals.union(found.starts[mine], found.ends[mine])),
            )
        )
    return tuple(sorted(parts, key=lambda part: (-part.time_us, part.where, part.what)))


def _names(trace: Trace, rows: Int32) -> Int32:
    """The number of each event's name; -1 for none."""
    found: Int32 = np.where(rows >= 0, trace.events.name[rows], np.int32(-1))
    return found


def _places(trace: Trace, found: Segments) -> tuple[Int64, list[str]]:
    """The number of each piece's lane, and the lanes' names."""
    lanes = trace.events.lanes
    names = [lane.label if trace.main_lane >= 0 else "the host, not recorded" for lane in lanes]
    place = found.lane.astype(np.int64)
    on_device = np.flatnonzero((found.lane < 0) & (found.row >= 0))
    rows = found.row[on_device]
    keys = np.stack((devices_of(trace.events, rows), streams_of(trace.events, rows)))
    streams, which = np.unique(keys, axis=1, return_inverse=True)
    place[on_device] = len(names) + which.reshape(-1)
    return place, names + [f"GPU {device} stream {stream}" for device, stream in streams.T.tolist()]
