"""A trace for Perfetto as it was meant: what overlaps in separate rows, arrows from each launch to its work."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from torchwhy.errors import ArgumentError
from torchwhy.export.nesting import nested
from torchwhy.export.result import Export
from torchwhy.trace.file.columns import ABSENT, Columns, Flags, Int32, Int64
from torchwhy.trace.file.origin import Origin
from torchwhy.trace.file.reread import read_events
from torchwhy.trace.file.scanning import scan
from torchwhy.trace.file.writing import whole_file
from torchwhy.trace.meaning.kinds import Kind, kinds_of
from torchwhy.trace.model.cut import FLOW, top_of
from torchwhy.trace.model.trace import Trace

__all__ = ["write_perfetto"]

COMPLETE: Final = ord("X")

_Event = dict[str, msgspec.Raw]
_EVENT: Final = msgspec.json.Decoder(_Event)


def write_perfetto(source: str, output: Path) -> Export:
    """Write a Chrome trace from which Perfetto loses nothing.

    Perfetto drops an event that partly overlaps another event of its row, such as a concurrent kernel in a replayed
    graph; here it gets a separate row. Arrows connect each launch with its work by their ids, even if the file has no
    arrows. Events with impossible times are omitted. Everything else is copied from the file, or from its repaired form
    if it is damaged.

    Args:
        source: path of a trace, plain or gzip.
        output: the new file; compressed where its name ends in .gz.

    Raises:
        TraceError: the trace cannot be read.
        ArgumentError: the output is the trace.
        OSError: the output cannot be written.
    """
    origin = Origin.of(source)
    columns = scan(source)
    path = origin.unchanged()
    if output.exists() and output.samefile(path):
        raise ArgumentError(f"output must differ from the trace's file, got {os.fspath(output)!r}")
    trace = Trace(origin.name, columns, origin)
    impossible = (trace.events.kind == Kind.OTHER) & (kinds_of(columns) != Kind.OTHER)
    rows = _Rows(trace, columns, ~impossible)
    kept = np.flatnonzero(~impossible & ~_arrows_of_work(trace, columns))
    linked = np.flatnonzero(trace.links.launch >= 0)
    with whole_file(output) as file:
        file.write(top_of(columns))
        separator = b"\n"
        for row, event in zip(kept.tolist(), read_events(path, columns, kept), strict=True):
            if event:
                file.write(separator + rows.changed(row, event))
                separator = b",\n"
        # Behind the events: an arrow belongs to what is open where it begins and ends.
        for number, place in enumerate(linked.tolist()):
            launch, work = int(trace.links.launch[place]), int(trace.links.work[place])
            for added in (rows.arrow(launch, number, {"ph": "s"}), rows.arrow(work, number, {"ph": "f", "bp": "e"})):
                file.write(separator + msgspec.json.encode(added))
        for added in rows.names():
            file.write(separator + msgspec.json.encode(added))
        file.write(b"\n]}\n")
    return Export(
        trace.file, str(output), "perfetto", len(kept), len(trace), output.stat().st_size,
        int(np.count_nonzero(rows.end < trace.events.end)), float((trace.events.end - rows.end).sum() / 1000),
        int(np.count_nonzero(rows.number)), int(np.count_nonzero(impossible)), len(linked),
    )  # fmt: skip


def _arrows_of_work(trace: Trace, columns: Columns) -> Flags:
    """The file's own arrows that end at work whose launch is known, all their points."""
    events, work = trace.events, trace.links.work[trace.links.launch >= 0]
    known = set(zip(events.lane[work].tolist(), events.ts[work].tolist(), strict=True))
    points = np.flatnonzero(np.isin(columns.phase, FLOW))
    arrow = list(zip(columns.flow[points].tolist(), columns.category[points].tolist(), strict=True))
    place = zip(events.lane[points].tolist(), events.ts[points].tolist(), strict=True)
    ends = {
        which
        for which, at, phase in zip(arrow, place, columns.phase[points].tolist(), strict=True)
        if phase == ord("f") and at in known
    }
    found = np.zeros(len(columns), np.bool_)
    found[points[np.fromiter((which in ends for which in arrow), np.bool_, len(arrow))]] = True
    return found


class _Rows:
    """Where the events of a trace stand so that those of each row nest.

    Attributes:
        end: of each event, nanoseconds.
        number: of each event's row among those of its thread or stream; 0 is the thread or stream itself.
    """

    def __init__(self, trace: Trace, columns: Columns, possible: Flags) -> None:
        events = self._events = trace.events
        self.end: Int64 = events.end.copy()
        self.number: Int32 = np.zeros(len(events), np.int32)
        drawn = np.flatnonzero(possible & (columns.phase == COMPLETE) & (events.ts != ABSENT))
        order = drawn[np.lexsort((-events.dur[drawn], events.ts[drawn], events.lane[drawn]))]
        for rows in np.split(order, np.flatnonzero(np.diff(events.lane[order])) + 1) if len(order) else ():
            self.end[rows], self.number[rows] = nested(events.ts[rows], events.end[rows], one_row=False)
        self._given = columns.dur
        taken = {(lane.pid, lane.tid) for lane in events.lanes}
        self._tids = {
            (lane, number): _free(events.lanes[lane].pid, events.lanes[lane].tid, number, taken)
            for lane, number in sorted(set(zip(events.lane.tolist(), self.number.tolist(), strict=True)))
            if number or not _taken_as_it_is(events.lanes[lane].tid)
        }
        moved = np.flatnonzero(self.number)
        self._at = {(int(events.lane[row]), int(events.ts[row])): row for row in moved.tolist()}
        self._points: Flags = np.isin(columns.phase, FLOW)

    def changed(self, row: int, event: bytes) -> bytes:
        """An event's JSON with its new times and row; unchanged if nothing differs."""
        events, values = self._events, {}
        here = self._at.get((int(events.lane[row]), int(events.ts[row])), row) if self._points[row] else row
        if tid := self._tids.get((int(events.lane[here]), int(self.number[here]))):
            values["tid"] = str(tid)
        length = int(self.end[row] - events.ts[row])
        if self._given[row] not in (ABSENT, length):
            values["dur"] = f"{length // 1000}.{length % 1000:03d}"
        if not values:
            return event
        given = _EVENT.decode(event)
        return msgspec.json.encode({**given, **{key: msgspec.Raw(text.encode()) for key, text in values.items()}})

    def arrow(self, row: int, number: int, point: dict[str, str]) -> dict[str, Any]:
        """One end of an arrow, at an event."""
        lane, ts = int(self._events.lane[row]), int(self._events.ts[row])
        tid = self._tids.get((lane, int(self.number[row])), _number(self._events.lanes[lane].tid))
        time = msgspec.Raw(f"{ts // 1000}.{ts % 1000:03d}".encode())
        pid = _number(self._events.lanes[lane].pid)
        return {**point, "cat": "launch", "name": "launch", "id": number, "pid": pid, "tid": tid, "ts": time}

    def names(self) -> Iterator[dict[str, Any]]:
        """What further rows are called, and where they stand: beside their thread or stream."""
        for (lane, number), tid in self._tids.items():
            of = self._events.lanes[lane]
            here = {"ph": "M", "pid": _number(of.pid), "tid": tid}
            yield {
                **here,
                "name": "thread_name",
                "args": {"name": f"{of.label} ({number + 1})" if number else of.label},
            }
            if isinstance(place := _number(of.tid), int):
                yield {**here, "name": "thread_sort_index", "args": {"sort_index": place}}


def _taken_as_it_is(tid: str) -> bool:
    """Whether Perfetto distinguishes this thread from others: negative numbers mean the process's first thread."""
    number = _number(tid)
    return isinstance(number, str) or 0 <= number < 1 << 31


def _free(pid: str, tid: str, number: int, taken: set[tuple[str, str]]) -> int:
    """A thread's id that nothing has in this process yet."""
    found = int(tid) * 1000 + number if tid.isdecimal() and len(tid) < 6 else 1_000_000 + number
    while (pid, str(found)) in taken:
        found += 1
    taken.add((pid, str(found)))
    return found


def _number(text: str) -> int | str:
    return int(text) if text.removeprefix("-").isdecimal() else text
