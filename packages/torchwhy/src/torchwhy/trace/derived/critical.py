"""The critical path: from the end of the window back to its beginning, always to what had to end first."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from torchwhy.trace.derived.host_timeline import HostTimeline
from torchwhy.trace.file.columns import Int32, Int64
from torchwhy.trace.meaning.annotations import STEP
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.runtime import WAIT_FOR_DEVICE
from torchwhy.trace.model.device import devices_of

if TYPE_CHECKING:
    from torchwhy.trace.model.trace import Trace

__all__ = ["Segments", "critical_segments"]

DEVICE, GAP, LAUNCH, HOST, PYTHON = range(5)


@dataclass(frozen=True)
class Segments:
    """Pieces of the path, one after the other from the beginning of the window to its end.

    Attributes:
        kind: an index into `kinds`.
        row: of the device work, or of the innermost call on the host; -1 for none.
        lane: the thread; -1 for a device.
        starts, ends: nanoseconds.
    """

    kinds: ClassVar = ("device", "device gap", "launch", "host", "python")
    kind: Int64
    row: Int32
    lane: Int32
    starts: Int64
    ends: Int64

    def __len__(self) -> int:
        return len(self.starts)


def critical_segments(trace: Trace) -> Segments:
    """Walk the path; `trace.derived(critical_segments)` does it once."""
    walk = _Walk(trace)
    walk.run()
    return _with_calls(trace, walk.found)


@dataclass
class _Device:
    """The work of one device by end, as lists, for looking up one at a time."""

    rows: list[int]
    ends: list[int]

    def last_by(self, time: int) -> int:
        i = bisect_right(self.ends, time) - 1
        return self.rows[i] if i >= 0 else -1


@dataclass
class _Thread:
    """When a thread was in any operator or runtime call, and the waits on it that a device's work ended.

    Attributes:
        begins, stops: of the stretches in calls.
        released: ends of waits; `work` and `work_end`: what each waited for, and when that ended.
    """

    begins: list[int]
    stops: list[int]
    released: list[int] = field(default_factory=list)
    work: list[int] = field(default_factory=list)
    work_end: list[int] = field(default_factory=list)


class _Walk:
    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.start, self.end = trace.window.start, trace.window.end
        self.found: list[tuple[int, int, int, int, int]] = []  # kind, row, lane, start, end: from the last to the first
        events, work = trace.events, trace.links.work
        self.ts, self.ends, self.lane = events.ts, events.end, events.lane
        self.launch = np.full(len(events) + 1, -1, np.int32)
        self.launch[work] = trace.links.launch
        numbers = devices_of(events, work)
        self.device_of = np.zeros(len(events) + 1, np.int64)
        self.device_of[work] = numbers
        by_end = np.argsort(events.end[work], kind="stable")
        self.all = _Device(work[by_end].tolist(), events.end[work[by_end]].tolist())
        self.devices = {}
        for number in np.unique(numbers).tolist():
            mine = work[by_end][numbers[by_end] == number]
            self.devices[number] = _Device(mine.tolist(), events.end[mine].tolist())
        self.main = trace.main_lane
        self.threads = self._threads()
        self.others = self._elsewhere()

    def run(self) -> None:
        """Follow the path until it reaches the beginning of the window."""
        time, lane = self.end, self.main
        work = self.trace.links.work
        running = int(np.searchsorted(self.ts[work], time, "left")) - 1  # the last to begin before the end
        place = int(work[running]) if running >= 0 and self.ends[work[running]] >= time else -1
        while time > self.start:
            if place >= 0:
                time, place, lane = self._device(time, place)
            else:
                time, place, lane = self._host(time, lane)

    def _add(self, kind: int, row: int, lane: int, start: int, end: int) -> int:
        start = max(start, self.start)
        if end > start:
            self.found.append((kind, row, lane, start, end))
        return min(start, end)

    def _device(self, time: int, row: int) -> tuple[int, int, int]:
        """From work back to what it followed: work that ended after its launch began, else the launch."""
        time = self._add(DEVICE, row, -1, int(self.ts[row]), time)
        launch = int(self.launch[row])
        before = self.devices[int(self.device_of[row])].last_by(time)
        if before == row:  # takes no time: don't come back to it
            before = -1
        end = int(self.ends[before]) if before >= 0 else -1
        if before >= 0 and int(self.ts[before]) < time and (launch < 0 or end >= int(self.ts[launch])):
            return self._add(GAP, row, -1, end, time), before, self.main
        if launch < 0:
            return time, -1, self.main
        called = min(int(self.ends[launch]), time)
        return self._add(LAUNCH, row, -1, called, time), -1, int(self.lane[launch])

    def _host(self, time: int, lane: int) -> tuple[int, int, int]:
        """From a moment on a thread back to the wait that released it, the thread that woke it, or the beginning."""
        thread = self.threads.get(lane)
        if thread is None:
            return self._add(HOST, -1, max(lane, 0), self.start, time), -1, lane
        i = bisect_right(thread.released, time) - 1
        wait, work = (thread.work_end[i], thread.work[i]) if i >= 0 else (self.start - 1, -1)
        if lane != self.main:
            j = bisect_left(thread.begins, time) - 1
            begun = thread.begins[j] if j >= 0 else time
            if begun > wait:
                woken = self._add(HOST, -1, lane, begun, time)
                return woken, -1, self.main
        else:
            k = bisect_right(self.others[0], time) - 1
            if k >= 0 and self.others[0][k] > max(wait, self.start):
                busy_until, other = self.others[0][k], self.others[1][k]
                return self._add(HOST, -1, lane, busy_until, time), -1, other
        return self._add(HOST, -1, lane, wait, time), work, lane

    def _threads(self) -> dict[int, _Thread]:
        events = self.trace.events
        rows = events.rows(Kind.OPERATOR, Kind.RUNTIME)  # annotations last on while a thread waits for another
        rows = rows[np.argsort(events.lane[rows], kind="stable")]
        found = {}
        for mine in np.split(rows, np.flatnonzero(np.diff(events.lane[rows])) + 1) if len(rows) else []:
            times = events.times_of(mine)
            found[int(events.lane[mine[0]])] = _Thread(times.starts.tolist(), times.ends.tolist())
        waits = events.of(WAIT_FOR_DEVICE)
        copies, made = _synchronous(self.trace)
        waits, made = np.concatenate((waits, copies)), np.concatenate((np.full(len(waits), -1, np.int32), made))
        order = np.argsort(events.end[waits], kind="stable")
        for row, own in zip(waits[order].tolist(), made[order].tolist(), strict=True):
            work = own if own >= 0 else self.all.last_by(int(self.ends[row]))
            if work >= 0 and self.ends[work] > max(self.ts[row], self.ts[work]):
                thread = found[int(self.lane[row])]
                thread.released.append(int(self.ends[row]))
                thread.work.append(work)
                thread.work_end.append(int(self.ends[work]))
        return found

    def _elsewhere(self) -> tuple[list[int], list[int]]:
        """When other threads with operators ended a stretch of calls while the main thread was in none: ends, lanes."""
        events = self.trace.events
        operators = set(np.unique(events.lane[events.rows(Kind.OPERATOR)]).tolist())
        main = self.threads.get(self.main)
        if main is None:
            return [], []
        ends, lanes = [], []
        for lane, thread in self.threads.items():
            if lane == self.main or lane not in operators:
                continue
            for begin, stop in zip(thread.begins, thread.stops, strict=True):
                i = bisect_right(main.begins, stop) - 1
                if (i < 0 or main.stops[i] <= begin) and stop > begin:
                    ends.append(stop)
                    lanes.append(lane)
        order = np.argsort(np.array(ends, np.int64), kind="stable").tolist()
        return [ends[i] for i in order], [lanes[i] for i in order]


def _synchronous(trace: Trace) -> tuple[Int32, Int32]:
    """Copying calls that returned only when their copy had ended, and the copies."""
    events, links = trace.events, trace.links
    known = (links.launch >= 0) & (events.kind[links.work] == Kind.MEMCPY)
    work, calls = links.work[known], links.launch[known]
    waited = events.end[work] <= events.end[calls]
    return calls[waited], work[waited]


def _with_calls(trace: Trace, found: list[tuple[int, int, int, int, int]]) -> Segments:
    """Put the path in order of time, and cut what threads did where their innermost call changes."""
    columns = np.array(found[::-1], np.int64).reshape(-1, 5)
    kind, row, lane, start, end = (columns[:, i] for i in range(5))
    host = kind == HOST
    parts = [(kind[~host], row[~host], lane[~host], start[~host], end[~host])]
    for one in np.unique(lane[host]).tolist():
        mine = host & (lane == one)
        timeline = HostTimeline.of(trace.events, trace.frames, one)
        _, rows, starts, ends = timeline.pieces(start[mine], end[mine])
        lasting = ends > starts
        rows, starts, ends = rows[lasting].astype(np.int64), starts[lasting], ends[lasting]
        rows[trace.events.are(STEP, rows) & (rows >= 0)] = -1
        python = (rows < 0) | (trace.events.kind[rows] == Kind.PYTHON)
        parts.append((np.where(python, PYTHON, HOST), rows, np.full(len(rows), one), starts, ends))
    kind, row, lane, start, end = (np.concatenate([part[i] for part in parts]) for i in range(5))
    order = np.argsort(start, kind="stable")
    return Segments(kind[order], row[order].astype(np.int32), lane[order].astype(np.int32), start[order], end[order])
