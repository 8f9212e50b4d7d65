"""A trace for speedscope: https://github.com/jlfwong/speedscope/wiki/Importing-from-custom-sources."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from torchwhy.export.nesting import nested
from torchwhy.export.result import Export
from torchwhy.trace.file.columns import Int32, Int64
from torchwhy.trace.file.writing import whole_file
from torchwhy.trace.meaning.frames import file_and_line
from torchwhy.trace.meaning.kinds import GPU_WORK, HOST, Kind
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import safe

__all__ = ["write_speedscope"]

SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"

DRAWN: Final = (*HOST, *GPU_WORK, Kind.DEVICE_ANNOTATION, Kind.OVERHEAD)


def write_speedscope(trace: Trace, output: Path) -> Export:
    """Write a profile for each thread and stream; that of the program's loop is shown first.

    speedscope wants events that nest: of two that overlap only partly, one ends earlier.

    Args:
        trace: whose events.
        output: the file; compressed where its name ends in .gz.

    Raises:
        OSError: it cannot be written.
    """
    events = trace.events
    rows = events.rows(*DRAWN)
    lanes = _in_order(trace, rows)
    names, frame = np.unique(events.name, return_inverse=True)
    head = {"$schema": SCHEMA, "name": Path(trace.file).name, "exporter": "torchwhy", "activeProfileIndex": 0}
    shared = {"frames": [_frame(events.texts[name] if name >= 0 else "") for name in names.tolist()]}
    clipped = clipped_ns = 0
    with whole_file(output) as file:
        file.write(msgspec.json.encode({**head, "shared": shared})[:-1] + b',"profiles":[')
        for place, lane in enumerate(lanes):
            inside = rows[events.lane[rows] == lane]
            start = events.ts[inside] - trace.beginning
            whole = events.end[inside] - trace.beginning
            end, _ = nested(start, whole, one_row=True)
            clipped += int(np.count_nonzero(end < whole))
            clipped_ns += int((whole - end).sum())
            length = trace.span[1] - trace.beginning
            profile: dict[str, Any] = {"type": "evented", "name": _name(trace, lane), "unit": "nanoseconds"}
            profile |= {"startValue": min(0, int(start.min())), "endValue": max(length, int(end.max()))}
            file.write((b",\n" if place else b"\n") + msgspec.json.encode(profile)[:-1] + b',"events":[')
            file.write(",".join(_opened_and_closed(start, end, frame.reshape(-1)[inside])).encode() + b"]}")
        file.write(b"\n]}\n")
    size = output.stat().st_size
    return Export(trace.file, str(output), "speedscope", len(rows), len(trace), size, clipped, clipped_ns / 1000)


def _in_order(trace: Trace, rows: Int32) -> list[int]:
    """The threads and streams that have events, the program's loop first, then as they begin."""
    lanes, first = np.unique(trace.events.lane[rows], return_index=True)
    ordered = lanes[np.argsort(first, kind="stable")].tolist()
    return sorted(ordered, key=lambda lane: lane != trace.main_lane)


def _name(trace: Trace, lane: int) -> str:
    """The name of a thread or stream; with its process where two have one name."""
    label = trace.events.lanes[lane].label
    alike = sum(other.label == label for other in trace.events.lanes)
    return safe(label if alike == 1 else f"{label} of process {trace.events.lanes[lane].pid}")


def _frame(name: str) -> dict[str, Any]:
    place = file_and_line(name)
    line = {"line": place[1]} if place and place[1] else {}
    return {"name": safe(name), **({"file": safe(place[0]), **line} if place else {})}


def _opened_and_closed(start: Int64, end: Int64, frame: Int64) -> Iterator[str]:
    """The beginnings and ends of nested events in the order of time."""
    open_: list[tuple[int, int]] = []
    for begins, ends, number in zip(start.tolist(), end.tolist(), frame.tolist(), strict=True):
        while open_ and open_[-1][0] <= begins:
            yield _event("C", *open_.pop())
        yield _event("O", begins, number)
        open_.append((ends, number))
    while open_:
        yield _event("C", *open_.pop())


def _event(kind: str, at: int, frame: int) -> str:
    return f'{{"type":"{kind}","at":{at},"frame":{frame}}}'
