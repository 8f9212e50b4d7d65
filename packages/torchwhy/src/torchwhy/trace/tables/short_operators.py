"""Operators that are mostly the cost of calling them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from torchwhy.trace.derived.cpu_communication import idle_exchanging
from torchwhy.trace.derived.host_activity import batch_waits, compiling
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.compiler import COMPILED_CODE, COMPILING
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.tables.grouping import Groups

if TYPE_CHECKING:
    import numpy.typing as npt

    from torchwhy.trace.model.trace import Trace

__all__ = ["short_operators"]

SHORT_NS: Final = 10_000
"""An operator whose own time is less, usually, is mostly the cost of calling it."""


def short_operators(trace: Trace) -> Int32:
    """Operators in the window whose own time is mostly the cost of calling them; without data and compilation.

    Calls of one operator with tensors of the same shapes are judged together, by their median: on a busy machine some
    are held up for milliseconds. Without shapes each is judged alone, since one name may do little and much.
    """
    events, window = trace.events, trace.derived(steady_window)
    rows = events.rows(Kind.OPERATOR)
    rows = rows[events.begin_in(rows, window.start, window.end)]
    rows = rows[~events.are(COMPILED_CODE | COMPILING, rows)]
    elsewhere = trace.derived(batch_waits) | trace.derived(compiling) | trace.derived(idle_exchanging)
    rows = rows[events.covered(rows, elsewhere) == 0]
    own = trace.calls.self_time[rows]
    usual: npt.NDArray[Any] = own
    if len(rows) and events.has("Input Dims"):
        alike = Groups(events.name[rows], events.text_ids("Input Dims", rows))
        usual = alike.median(own)[alike.which]
    found: Int32 = np.asarray(rows[usual < SHORT_NS])
    return found
