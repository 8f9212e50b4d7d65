"""Columns that grow event by event, as the scanner in Python reads them."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Final

import numpy as np

from torchwhy.trace.file.columns import ABSENT, Argument, Columns, Repairs
from torchwhy.trace.file.limits import Excess, Limits

__all__ = ["Event", "GrowingColumns"]

FLOW_PHASES: Final = frozenset(b"stf")
CODES: Final = {"int": "q", "float": "d", "text": "i"}


class Event:
    """What has been read of the event at hand."""

    def __init__(self) -> None:
        self.empty = True
        self.phase = 0
        self.flow = ABSENT
        self.times = {"ts": ABSENT, "dur": ABSENT}
        self.texts = {"category": -1, "name": -1, "pid": -1, "tid": -1}
        self.arguments: dict[bytes, float] = {}


class GrowingColumns:
    """The events read so far.

    Args:
        kinds: the arguments to keep, and as what: "int", "float" or "text".
        limits: of texts and of the number of events; beyond them `Excess` is raised.
    """

    def __init__(self, kinds: Mapping[bytes, str], limits: Limits) -> None:
        self.limits = limits
        self.interned: dict[str, int] = {}
        self.text_bytes = 0
        self.phase, self.offset, self.flow = array("B"), array("q"), array("q")
        self.times = {name: array("q") for name in ("ts", "dur")}
        self.texts = {name: array("i") for name in ("category", "name", "pid", "tid")}
        self.arguments = {key: (array("i"), array(CODES[kind])) for key, kind in kinds.items()}

    def intern(self, text: str) -> int:
        """The index of a text."""
        if text not in self.interned:
            size = len(text.encode())
            if size > self.limits.text:
                raise Excess("text", size)
            if self.text_bytes + size > self.limits.texts:
                raise Excess("texts", self.text_bytes + size)
            self.text_bytes += size
            self.interned[text] = len(self.interned)
        return self.interned[text]

    def append(self, event: Event, start: int) -> None:
        """Add an event that begins at this byte of the file."""
        row = len(self.phase)
        if row >= self.limits.events:
            raise Excess("events", row + 1)
        self.phase.append(event.phase)
        self.offset.append(start)
        self.flow.append(event.flow if event.phase in FLOW_PHASES else ABSENT)
        for name, time in event.times.items():
            self.times[name].append(time)
        for name, index in event.texts.items():
            self.texts[name].append(index)
        for key, value in event.arguments.items():
            rows, values = self.arguments[key]
            rows.append(row)
            values.append(value)  # type: ignore[arg-type]

    def columns(self, top: dict[str, str], size: int, repairs: Repairs) -> Columns:
        """Return them, with what is known of the file as a whole."""
        arguments = {
            key.decode(): Argument(np.array(rows, np.int32), np.array(values))
            for key, (rows, values) in self.arguments.items()
        }
        return Columns(
            phase=np.array(self.phase, np.uint8),
            ts=np.array(self.times["ts"], np.int64),
            dur=np.array(self.times["dur"], np.int64),
            category=np.array(self.texts["category"], np.int32),
            name=np.array(self.texts["name"], np.int32),
            pid=np.array(self.texts["pid"], np.int32),
            tid=np.array(self.texts["tid"], np.int32),
            flow=np.array(self.flow, np.int64),
            offset=np.array(self.offset, np.int64),
            arguments=arguments,
            texts=list(self.interned),
            top=top,
            size=size,
            repairs=repairs,
        )
