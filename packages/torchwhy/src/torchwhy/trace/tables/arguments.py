"""All arguments of events, read again from the file: `trace.arguments(rows)`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from torchwhy.errors import ArgumentError

if TYPE_CHECKING:
    from torchwhy.trace.model.trace import Trace

__all__ = ["arguments"]


def arguments(trace: Trace, rows: Iterable[int]) -> list[dict[str, Any]]:
    """Return all arguments (`args`) of some events.

    A loaded trace keeps only the arguments that rules and queries use, and those of `load(columns=...)`; this method
    reads the required part of the file again.

    Args:
        rows: events, in any order.

    Returns:
        One dictionary per row, in the order of `rows`.

    Raises:
        ArgumentError: a row does not belong to the trace.
        TraceError: the trace came from standard input or an open file, or the file has changed since.
    """
    from torchwhy.trace.file.reread import read_arguments

    wanted = np.asarray(list(rows), np.int64)
    if len(wanted) and (wanted.min() < 0 or wanted.max() >= len(trace)):
        bad = wanted[(wanted < 0) | (wanted >= len(trace))]
        raise ArgumentError(f"rows must lie in [0, {len(trace)}), got {int(bad[0])}")
    return read_arguments(trace.origin.unchanged(), trace.events.offset[wanted])
