"""The critical path of the window: `trace.critical_path()`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from torchwhy.trace.derived.critical import Segments, critical_segments
from torchwhy.trace.file.columns import Int64
from torchwhy.trace.model.device import devices_of, streams_of
from torchwhy.trace.tables.grouping import Groups, us
from torchwhy.trace.tables.kernels import labels
from torchwhy.trace.tables.table import Table

if TYPE_CHECKING:
    from torchwhy.trace.model.trace import Trace

__all__ = ["critical_path"]


def critical_path(trace: Trace, *, in_order: bool = False) -> Table:
    """Return the chain of host and device work that determines the length of the window.

    From the last end backwards: device work follows the work before it if it was launched before that ended, else its
    launch; a launch follows what its thread did before; a thread that waited for a device follows the work it waited
    for. The times add up to the window. Dependencies that the trace does not contain (events between streams) are
    inferred from the order of ends, so the path is an estimate.

    Args:
        in_order: one row per piece in order of time, instead of one per name.

    Returns:
        `kind`: "device", "device gap" (queued work that didn't begin at once), "launch" (from the end of the call to
        the beginning of its work), "host" (the innermost call at the time), "python" (a thread between recorded calls:
        the frame, where frames were recorded); `name`; `total_us`; `share` of the window; `pieces`. In order instead:
        `start_us` from the beginning of the trace, `kind`, `name`, `where` (thread or stream), `total_us`.
    """
    found = trace.derived(critical_segments)
    if in_order:
        return _in_order(trace, found)
    spent = found.ends - found.starts
    groups = Groups(found.kind, np.where(found.row >= 0, trace.events.name[found.row], -1) if len(found) else found.row)
    first = groups.first.tolist()
    total = groups.sum(spent)
    window = max(trace.window.end - trace.window.start, 1)
    return Table(
        {
            "kind": [found.kinds[found.kind[i]] for i in first],
            "name": labels(trace, found.row[groups.first]),
            "total_us": us(total),
            "share": total / window,
            "pieces": groups.count,
        }
    ).sorted("total_us")


def _in_order(trace: Trace, found: Segments) -> Table:
    return Table(
        {
            "start_us": us(found.starts - trace.beginning),
            "kind": [found.kinds[kind] for kind in found.kind.tolist()],
            "name": labels(trace, found.row),
            "where": _where(trace, found),
            "total_us": us(found.ends - found.starts),
        }
    )


def _where(trace: Trace, found: Segments) -> list[str]:
    on_device = np.flatnonzero(found.lane < 0)
    rows = found.row[on_device]
    places: dict[int, str] = {}
    numbers: list[Int64] = [devices_of(trace.events, rows), streams_of(trace.events, rows)]
    for i, device, stream in zip(on_device.tolist(), numbers[0].tolist(), numbers[1].tolist(), strict=True):
        places[i] = f"GPU {device} stream {stream}"
    lanes = trace.events.lanes
    return [places.get(i) or lanes[lane].label for i, lane in enumerate(found.lane.tolist())]
