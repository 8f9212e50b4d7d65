"""The device's work by kind: how much it is, how near to what the device can do, and the time to gain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from torchwhy.trace.derived.device_peaks import used_peaks
from torchwhy.trace.derived.kernels import in_window, kernel_names, kernels_of
from torchwhy.trace.derived.roofline import ATTAINABLE, LATENCY, kinds_and_owners, roofline_groups
from torchwhy.trace.file.columns import Int32, Int64
from torchwhy.trace.meaning.copies import WAYS, read_copy
from torchwhy.trace.meaning.kernels import KINDS
from torchwhy.trace.meaning.kinds import Kind

if TYPE_CHECKING:
    from torchwhy.trace.model.trace import Trace

__all__ = ["BOUNDS", "KindOfWork", "kinds_of_work"]


BOUNDS: Final = ("compute", "memory", "latency")
"""The limits of kernels: arithmetic, memory, or the time to begin and end one with little to do."""


@dataclass(frozen=True)
class KindOfWork:
    """Device work of one kind in the window; times in nanoseconds.

    Attributes:
        kind: one of `torchwhy.trace.meaning.kernels.KINDS`, or "transfer": copies from one memory to another.
        rows: its kernels, copies and fills.
        spent: their durations together; work that runs at the same time counts twice.
        share: of the durations of all work.
        judged: of these kernels, the time of those whose operators' shapes show how much there is to do.
        flops, bytes: arithmetic operations, and bytes read and written at least, in that time.
        ideal: what it would take at the roofline; 0 where the device's peaks aren't known.
        bound: one of `BOUNDS`, what limits most of the judged time; "" where that isn't known.
        gain: the time less, if all of it came to `ATTAINABLE` of the roofline, no call to less than 5 us.
    """

    kind: str
    rows: Int32
    spent: int
    share: float
    judged: int = 0
    flops: float = 0.0
    bytes: float = 0.0
    ideal: float = 0.0
    bound: str = ""
    gain: float = 0.0

    @property
    def of_roofline(self) -> float:
        """The judged time's part of the roofline, NaN if unknown; never above 1."""
        return min(self.ideal / self.judged, 1.0) if self.judged and self.ideal else float("nan")


def kinds_of_work(trace: Trace) -> tuple[KindOfWork, ...]:
    """Return the kinds, those that take the most time first; `trace.derived(kinds_of_work)` does it once."""
    events, window = trace.events, trace.window
    kernels, every = trace.derived(kernels_of), trace.derived(kernel_names)
    communication = every.rows[every.that(lambda name: name.operation == "communication")]
    communication = communication[in_window(trace, communication)]
    moves = trace.links.work
    moves = moves[np.isin(events.kind[moves], (Kind.MEMCPY, Kind.MEMSET)) & in_window(trace, moves)]
    copies = [_of_move(trace, row) for row in moves.tolist()]
    kinds, _ = trace.derived(kinds_and_owners)
    rows: Int32 = np.concatenate((kernels.rows, communication, moves)).astype(np.int32)
    label = np.array([*kinds, *["communication"] * len(communication), *copies], object)
    spent: Int64 = np.minimum(events.end[rows], window.end) - np.maximum(events.ts[rows], window.start)
    whole = int(spent.sum())
    if not whole:
        return ()
    found = [
        _made(trace, kind, rows[label == kind], int(spent[label == kind].sum()), whole)
        for kind in (*KINDS, "transfer")
        if (label == kind).any()
    ]
    return tuple(sorted(found, key=lambda one: -one.spent))


def _made(trace: Trace, kind: str, rows: Int32, spent: int, whole: int) -> KindOfWork:
    peaks = used_peaks(trace)
    # If peaks lack a group's type, its share of them is unknown.
    groups = [group for group in trace.derived(roofline_groups) if group.kind == kind and (group.ideal or not peaks)]
    judged, moved = sum(group.spent for group in groups), sum(group.moved for group in groups)
    ideal, gain = sum(group.ideal for group in groups), sum(group.gain for group in groups)
    limits = {bound: sum(group.spent for group in groups if group.bound == bound) for bound in BOUNDS}
    if kind in ("copy", "transfer"):
        size, taken = _copied(trace, rows)
        twice = 2 if kind == "copy" else 1  # within a memory what is read is written, too
        judged, moved = judged + int(taken.sum()), moved + twice * int(size.sum())
        if peaks and kind == "copy":
            at_best = twice * size / peaks.bandwidth
            small = at_best < LATENCY * ATTAINABLE
            ideal += float(at_best.sum())
            gain += float(np.maximum(taken - np.maximum(at_best / ATTAINABLE, LATENCY), 0.0).sum())
            limits["latency"] += int(taken[small].sum())
            limits["memory"] += int(taken[~small].sum())
    return KindOfWork(
        kind,
        rows,
        spent,
        spent / whole,
        judged,
        sum(group.work for group in groups),
        moved,
        ideal,
        max(limits, key=lambda bound: limits[bound]) if any(limits.values()) else "",
        gain,
    )


def _of_move(trace: Trace, row: int) -> str:
    if trace.events.kind[row] == Kind.MEMSET:
        return "copy"
    texts = (trace.events.text(key, row) or "" for key in ("copy kind", "src kind", "dst kind"))
    return "copy" if read_copy(trace.name(row), *texts)[0] == WAYS.index("DtoD") else "transfer"


def _copied(trace: Trace, rows: Int32) -> tuple[Int64, Int64]:
    """Bytes and nanoseconds of each copy among some work whose bytes are recorded."""
    events = trace.events
    copies = rows[events.kind[rows] == Kind.MEMCPY]
    size = events.integers("bytes", copies)
    known = size > 0
    return size[known], events.dur[copies[known]]
