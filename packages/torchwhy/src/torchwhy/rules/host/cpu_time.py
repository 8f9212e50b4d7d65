"""Where the time of operators on the CPU goes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from torchwhy.finding import Evidence
from torchwhy.rules.evidence import evidence, most_first
from torchwhy.trace.derived.host_activity import compiling
from torchwhy.trace.derived.stack_samples import sampled_stack
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.file.columns import Int32, Int64
from torchwhy.trace.meaning.communication import EXCHANGE
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.model.trace import Trace

__all__ = ["by_shape", "own_time"]


def own_time(trace: Trace) -> tuple[Int32, Int64]:
    """Operators in the window that compute, and their own time; without compilation and exchanges with other ranks."""
    events = trace.events
    rows = events.rows(Kind.OPERATOR)
    settled = events.ts[rows] >= trace.derived(steady_window).start
    rows = rows[trace.in_steps(rows) & settled & ~events.are(EXCHANGE, rows)]
    busy = trace.derived(compiling)
    rows = rows[events.covered(rows, busy) == 0] if len(busy) else rows
    return rows, trace.calls.self_time[rows]


def by_shape(trace: Trace, rows: Int32, times: Int64) -> tuple[Evidence, ...]:
    """Evidence by shapes of the inputs, the most time first."""
    shapes = trace.events.text_ids("Input Dims", rows)
    if (shapes < 0).all():
        return evidence(trace, rows, times=times)
    distinct, which = np.unique(shapes, return_inverse=True)
    total = np.bincount(which, times.astype(np.float64))
    texts = [trace.events.texts[int(shape)] if shape >= 0 else "unknown" for shape in distinct]
    found: list[Evidence] = []
    for i in most_first(total, texts)[:3]:
        same, text = which == i, texts[i]
        while text.endswith(",[]]") or text.endswith(", []]"):  # arguments without a tensor
            text = text[: text.rindex(",")] + "]"
        found += evidence(trace, rows[same], times=times[same], limit=2, note=f"inputs {text[:80]}")
    if not any(one.stack for one in found):  # too few samples for each shape, perhaps enough for all
        found = [replace(one, stack=sampled_stack(trace, rows)) for one in found]
    return tuple(sorted(found, key=lambda item: -(item.time_us or 0.0))[:5])
