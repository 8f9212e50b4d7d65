"""Idle times of the devices: `trace.idle()`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from torchwhy.trace.derived.gaps import Cause, idle_gaps
from torchwhy.trace.derived.host_timeline import HostTimeline
from torchwhy.trace.file.columns import Int32, Int64
from torchwhy.trace.meaning.annotations import STEP
from torchwhy.trace.tables.grouping import us
from torchwhy.trace.tables.kernels import labels
from torchwhy.trace.tables.table import Table

if TYPE_CHECKING:
    from torchwhy.trace.model.trace import Trace

__all__ = ["idle_table"]

MOST: Final = 0.7
"""Share of a gap that an event must cover to count as the host's activity in it."""

WORDS: Final = {
    "HOST": "host was late",
    "WAIT": "host waited for the device, then was late",
    "CALL": "launching call took long",
    "DEVICE": "queued, waited for something else",
    "SWITCH": "between queued work",
    "PROFILER": "profiler",
    "UNKNOWN": "launch not recorded",
    "END": "no work followed",
}


def idle_table(trace: Trace) -> Table:
    """Return the time ranges of the window in which no device had work, the longest first.

    Returns:
        `start_us` from the beginning of the trace; `length_us`; `after` and `before`: the work that ended where it
        begins and began where it ends ("" at the edges of the window); `cause`: "host was late" where the next work was
        launched only after the device had run dry, "queued, ..." where it was launched before; `host`: the innermost
        event that covers most of the gap on the thread that launched what follows ("" where none does: Python between
        calls, unless frames were recorded), and `host_us`, how much.
    """
    events, gaps = trace.events, trace.derived(idle_gaps)
    work = trace.links.work
    order = work[np.argsort(events.end[work], kind="stable")]
    i = np.searchsorted(events.end[order], gaps.starts, "right") - 1
    ended = i >= 0
    ended[ended] = events.end[order[i[ended]]] == gaps.starts[ended]
    host, covered = _host(trace, gaps.starts, gaps.ends, gaps.launch)
    words = {int(cause): WORDS.get(cause.name, cause.name.lower()) for cause in Cause}
    return Table(
        {
            "start_us": us(gaps.starts - trace.beginning),
            "length_us": us(gaps.lengths),
            "after": labels(trace, np.where(ended, order[np.maximum(i, 0)], -1) if len(order) else gaps.work),
            "before": labels(trace, gaps.work),
            "cause": [words[cause] for cause in gaps.cause.tolist()],
            "host": labels(trace, host),
            "host_us": us(covered),
        }
    ).sorted("length_us")


def _host(trace: Trace, starts: Int64, ends: Int64, launch: Int32) -> tuple[Int32, Int64]:
    """The innermost event that covers most of each stretch on the launching thread, or -1, and how much it covers.

    What covers more than half of a stretch is going on in its middle: from there outwards.
    """
    events, tree = trace.events, trace.frames
    lane = np.where(launch >= 0, events.lane[launch], trace.main_lane) if len(events) else launch
    row = np.full(len(starts), -1, np.int32)
    for one in np.unique(lane).tolist():
        here = lane == one
        row[here] = HostTimeline.of(events, tree, one).at(starts[here] + (ends - starts)[here] // 2)
    while True:
        covered = np.minimum(events.end[row], ends) - np.maximum(events.ts[row], starts) if len(events) else starts
        outer = np.flatnonzero((row >= 0) & (covered < MOST * (ends - starts)))
        if not len(outer):
            break
        row[outer] = tree.parent[row[outer]]
    row[events.are(STEP, row) if len(events) else slice(0)] = -1
    return row, np.where(row >= 0, covered, 0)
