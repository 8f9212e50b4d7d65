"""The copies of the window: which way, from what memory, how many bytes, and when nothing else went on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from torchwhy.trace.derived.device_time import device_time
from torchwhy.trace.derived.kernels import in_window
from torchwhy.trace.file.columns import ABSENT, Flags, Int32, Int64
from torchwhy.trace.meaning.copies import PAGEABLE, PINNED, WAYS, read_copy
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.model.device import devices_of
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace

__all__ = ["PAGEABLE", "PINNED", "SMALL", "Transfers", "exposed", "step_count", "takes_long", "transfers"]

SMALL: Final = 4096
"""Copies of fewer bytes cost their call, whatever the memory: reading a scalar is one of them."""


@dataclass(frozen=True)
class Transfers:
    """Copies that ran within the window, by start.

    Attributes:
        rows: of the copies.
        launch: the call that put each there, or -1.
        operator: the innermost operator around that call, or -1.
        bytes: how many; 0 where not recorded.
        spent: nanoseconds.
        host: `PAGEABLE`, `PINNED`, or 0 where the trace doesn't show it.
    """

    rows: Int32
    launch: Int32
    operator: Int32
    bytes: Int64
    spent: Int64
    host: Int64
    _way: Int64

    def way(self, *names: str) -> Flags:
        """Which go one of these ways: "HtoD", "DtoH", "DtoD", "PtoP"."""
        return np.isin(self._way, [WAYS.index(name) for name in names])


def transfers(trace: Trace) -> Transfers:
    """Read the copies; `trace.derived(transfers)` does it once."""
    events, links = trace.events, trace.links
    at = np.flatnonzero((events.kind[links.work] == Kind.MEMCPY) & in_window(trace, links.work))
    rows = links.work[at]
    texts = np.stack(
        [events.name[rows]] + [events.text_ids(key, rows) for key in ("copy kind", "src kind", "dst kind")]
    )
    distinct, which = np.unique(texts, axis=1, return_inverse=True)
    which = which.reshape(-1)
    read = [read_copy(*(events.texts[i] if i >= 0 else "" for i in column)) for column in distinct.T.tolist()]
    way, host = (np.array([item[i] for item in read], np.int64)[which] for i in (0, 1))
    size = events.integers("bytes", rows)
    return Transfers(
        rows,
        links.launch[at],
        trace.derived(device_time).operator[at],
        np.where(size == ABSENT, 0, size),
        events.dur[rows],
        host,
        way,
    )


def exposed(trace: Trace, rows: Int32) -> Intervals:
    """When these copies ran and their device did nothing else but copy, within the window."""
    events, found = trace.events, Intervals.union([], [])
    device = devices_of(events, rows)
    for gpu in trace.gpus:
        own = rows[device == gpu.device]
        if len(own):
            found = found | (events.times_of(own) - (gpu.compute | gpu.communication))
    return found.clip(trace.window.start, trace.window.end)


def step_count(trace: Trace) -> int:
    """How many steps the window has; 1 where none were found."""
    return max(len(trace.steps_found), 1)


def takes_long(trace: Trace, way: str, *, share: float = 0.05, per_step: float = 10) -> Flags | None:
    """The copies of a way, if they belong to transfer-share: while nothing is computed they take 5% of the window.

    Or 1% where more than 10 of some size are made per step. Of copies to the device those from pageable memory are left
    out: these belong to pageable-copy.
    """
    copies = trace.derived(transfers)
    large = copies.bytes >= SMALL
    chosen = copies.way(way)
    if way == "HtoD":
        chosen &= ~(large & (copies.host == PAGEABLE))
    part = trace.window.share(exposed(trace, copies.rows[chosen]))
    count = int((chosen & large).sum()) / step_count(trace)
    many = bool(trace.steps_found) and count > per_step and part >= 0.01
    return chosen if part >= share or many else None
