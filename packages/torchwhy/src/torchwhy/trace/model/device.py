"""Activity of the GPUs: busy and idle time, computing, communicating and copying, per device."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from torchwhy.trace.file.columns import ABSENT, Flags, Int32, Int64
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.model.events import Events
from torchwhy.trace.model.intervals import Intervals

__all__ = ["DeviceWork", "devices_of", "streams_of"]


@dataclass(frozen=True)
class DeviceWork:
    """The work of one device (or of all together).

    Attributes:
        device: its id; -1 for all.
        rows: kernels, copies and fills, by start.
        exchanging: rows of all devices' kernels that exchange data between ranks.
    """

    device: int
    rows: Int32
    exchanging: Int32
    _events: Events

    @cached_property
    def busy(self) -> Intervals:
        """When at least one piece of work ran, on whatever stream."""
        return self._union(self.rows)

    @cached_property
    def compute(self) -> Intervals:
        """When a kernel that doesn't communicate, or a fill, ran."""
        kind = self._events.kind[self.rows]
        return self._union(self.rows[((kind == Kind.KERNEL) & ~self._communicates) | (kind == Kind.MEMSET)])

    @cached_property
    def communication(self) -> Intervals:
        """When a communicating kernel ran."""
        return self._union(self.rows[self._communicates])

    @cached_property
    def copies(self) -> Intervals:
        """When a copy ran."""
        return self._union(self.rows[self._events.kind[self.rows] == Kind.MEMCPY])

    @cached_property
    def exposed_communication(self) -> Intervals:
        """When only communication (and perhaps copies) ran."""
        return self.communication - self.compute

    @cached_property
    def exposed_copies(self) -> Intervals:
        """When nothing but copies ran."""
        return self.copies - (self.compute | self.communication)

    @property
    def span(self) -> tuple[int, int]:
        """From the first start to the last end, nanoseconds; (0, 0) without work."""
        busy = self.busy
        return (int(busy.starts[0]), int(busy.ends[-1])) if len(busy) else (0, 0)

    @property
    def span_ns(self) -> int:
        """Length of the span."""
        start, end = self.span
        return end - start

    @property
    def idle(self) -> Intervals:
        """Gaps between the first and the last piece of work."""
        return self.busy.gaps()

    @property
    def kernels(self) -> Int32:
        """Rows of kernels, by start."""
        found: Int32 = self.rows[self._events.kind[self.rows] == Kind.KERNEL]
        return found

    @cached_property
    def streams(self) -> tuple[int, ...]:
        """The streams that had work."""
        return tuple(np.unique(streams_of(self._events, self.rows)).tolist())

    @property
    def communication_rows(self) -> Int32:
        """Rows of communicating kernels, by start."""
        found: Int32 = self.rows[self._communicates]
        return found

    @cached_property
    def _communicates(self) -> Flags:
        return np.isin(self.rows, self.exchanging)

    def _union(self, rows: Int32) -> Intervals:
        return self._events.times_of(rows)


def devices_of(events: Events, rows: Int32) -> Int64:
    """The device of each row of device work: its argument, or the process it is filed under."""
    found = events.integers("device", rows)
    missing = np.flatnonzero(found == ABSENT)
    if len(missing):
        by_lane = np.array([_digits(lane.pid) for lane in events.lanes], np.int64)
        found[missing] = by_lane[events.lane[rows[missing]]]
    return found


def streams_of(events: Events, rows: Int32) -> Int64:
    """The stream of each row of device work: its argument, or the lane it is drawn on."""
    found = events.integers("stream", rows)
    missing = np.flatnonzero(found == ABSENT)
    if len(missing):
        by_lane = np.array([_digits(lane.tid) for lane in events.lanes], np.int64)
        found[missing] = by_lane[events.lane[rows[missing]]]
    return found


def _digits(text: str) -> int:
    digits = "".join(character for character in text if character in "0123456789")[:19]
    return int(digits) % 2**62 if digits else 0
