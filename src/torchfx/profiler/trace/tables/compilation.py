"""What torch.compile did: `trace.compile()`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from torchfx.profiler.trace.derived.device_time import device_time
from torchfx.profiler.trace.tables.grouping import Groups, us
from torchfx.profiler.trace.tables.table import Table

if TYPE_CHECKING:
    from torchfx.profiler.trace.model.trace import Trace

__all__ = ["compilation"]


def compilation(trace: Trace) -> Table:
    """Compilations, lookups, compiled regions and graphs by name, in order of their first appearance.

    Returns:
        `kind`: "compile" for compilations (the outermost stage of each), "lookup" for the checks whether compiled code
        fits, "region" for compiled code that ran, "graph" for the calls of Inductor's graphs in them; `name`; `calls`;
        `host_us` in all; `median_us`; `device_us` of the work launched in them; `start_us` of the first, from the
        beginning of the trace.
    """
    from torchfx.profiler.trace.derived.compiled import compiled_of

    found = trace.derived(compiled_of)
    compiled = np.array([one.row for one in found.compilations], np.int32)
    parts = {"compile": compiled, "lookup": found.lookups, "region": found.regions, "graph": found.graphs}
    rows = np.concatenate(list(parts.values())).astype(np.int32)
    which = np.repeat(np.arange(len(parts)), [len(part) for part in parts.values()])
    events = trace.events
    groups = Groups(which, events.name[rows])
    first = groups.least(events.ts[rows])
    return Table(
        {
            "kind": [list(parts)[i] for i in which[groups.first].tolist()],
            "name": [trace.name(row) for row in rows[groups.first].tolist()],
            "calls": groups.count,
            "host_us": us(groups.sum(events.dur[rows])),
            "median_us": groups.median(events.dur[rows]) / 1000,
            "device_us": us(groups.sum(trace.derived(device_time).total[rows])),
            "start_us": us(first - trace.beginning),
        }
    ).sorted("start_us", descending=False)
