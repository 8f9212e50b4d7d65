"""All events of a trace as one table: `trace.to_table()`, `.to_pandas()`, `.to_arrow()`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from torchwhy.trace.file.columns import ABSENT
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.tables.grouping import us
from torchwhy.trace.tables.table import Table

if TYPE_CHECKING:
    from torchwhy.trace.model.trace import Trace

__all__ = ["event_table"]


def event_table(trace: Trace) -> Table:
    """Return all valid events, in file order.

    Returns:
        `row`; `kind`, `name`; `start_us` from the beginning of the trace; `duration_us`; `thread` (or stream);
        `process`; `parent`: the row of the innermost call around it, `launch`: of the call that put it on a device,
        `correlation`: -1 if absent; `step`: index of the step in which a host event begins, or -1.
    """
    events = trace.events
    rows = np.flatnonzero(events.kind[: len(trace)] != Kind.OTHER).astype(np.int32)
    launch = np.full(len(events), -1, np.int32)
    launch[trace.links.work] = trace.links.launch
    correlation = events.integers("correlation", rows)
    kinds = [kind.name.lower() for kind in Kind]
    return Table(
        {
            "row": rows,
            "kind": [kinds[kind] for kind in events.kind[rows].tolist()],
            "name": [events.texts[i] if i >= 0 else "" for i in events.name[rows].tolist()],
            "start_us": us(events.ts[rows] - trace.beginning),
            "duration_us": us(events.dur[rows]),
            "thread": [events.lanes[i].label for i in events.lane[rows].tolist()],
            "process": [events.lanes[i].pid for i in events.lane[rows].tolist()],
            "parent": trace.frames.parent[rows],
            "launch": launch[rows],
            "correlation": np.where(correlation == ABSENT, -1, correlation),
            "step": np.where(events.kind[rows] <= Kind.PYTHON, trace.step_of(rows), -1),
        }
    )
