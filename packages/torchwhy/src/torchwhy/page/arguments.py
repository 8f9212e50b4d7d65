"""Arguments of events that a trace keeps, which the page shows for the selected event."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

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
_SIZES: Final = {"bytes": "size", "shared memory": "shared memory of a block"}
_COUNTS: Final = {"registers per thread": "registers of a thread"}
_PERCENT: Final = {"est. achieved occupancy %": "occupancy, estimated"}
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
    for labels, in_words in ((_SIZES, size_text), (_COUNTS, str)):
        for key, label in labels.items():
            numbers = events.integers(key, rows)
            found.append(_column(label, numbers, numbers != ABSENT, in_words))
    for key, label in _PERCENT.items():
        shares = events.floats(key, rows)
        found.append(_column(label, np.round(shares), ~np.isnan(shares), "{:.0f}%".format))
    return tuple(column for column in found if len(column.events))


def _column(
    label: str, numbers: npt.NDArray[Any], there: npt.NDArray[np.bool_], in_words: Callable[[Any], str]
) -> ArgumentColumn:
    """A column of numbers, each in words."""
    events = np.flatnonzero(there).astype(np.int32)
    known, values = np.unique(numbers[events], return_inverse=True)
    return ArgumentColumn(label, events, values.reshape(-1).astype(np.int32), tuple(map(in_words, known.tolist())))
