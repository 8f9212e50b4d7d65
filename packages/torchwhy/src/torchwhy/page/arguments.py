"""What a trace keeps of the arguments of events, for the page to say of the selected one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from torchwhy.trace.file.columns import ABSENT, Int32
from torchwhy.wording import safe, shortened, size_text

if TYPE_CHECKING:
    from torchwhy.trace.model.trace import Trace

__all__ = ["ArgumentColumn", "argument_columns"]

_TEXTS: Final = {
    "Input Dims": "shapes",
    "Input type": "types",
    "grid": "grid",
    "block": "block",
    "Process Group Name": "group",
    "dtype": "type",
}
_SIZES: Final = {"bytes": "size"}
_LONGEST: Final = 300
"""Characters of a value."""


@dataclass(frozen=True)
class ArgumentColumn:
    """One argument of the events that have it.

    Attributes:
        label: what it is.
        events: of the timeline, ascending.
        values: of each, an index into `texts`.
        texts: the different values.
    """

    label: str
    events: Int32
    values: Int32
    texts: tuple[str, ...]


def argument_columns(trace: Trace, rows: Int32) -> tuple[ArgumentColumn, ...]:
    """Return the arguments that any drawn event has.

    Args:
        trace: the trace.
        rows: its row for each event of the timeline.
    """
    events, found = trace.events, []
    for key, label in _TEXTS.items():
        column = events.text_ids(key, rows)
        there = np.flatnonzero(column >= 0).astype(np.int32)
        known, values = np.unique(column[there], return_inverse=True)
        texts = tuple(shortened(safe(events.texts[i]), _LONGEST) for i in known.tolist())
        found.append(ArgumentColumn(label, there, values.reshape(-1).astype(np.int32), texts))
    for key, label in _SIZES.items():
        sizes = events.integers(key, rows)
        there = np.flatnonzero(sizes != ABSENT).astype(np.int32)
        known, values = np.unique(sizes[there], return_inverse=True)
        texts = tuple(size_text(size) for size in known.tolist())
        found.append(ArgumentColumn(label, there, values.reshape(-1).astype(np.int32), texts))
    return tuple(column for column in found if len(column.events))
