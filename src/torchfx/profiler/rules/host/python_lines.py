"""Which lines of Python the time between operators belongs to, where stacks were recorded."""

from __future__ import annotations

import numpy as np

from torchfx.profiler.finding import Evidence
from torchfx.profiler.rules.evidence import most_first
from torchfx.profiler.trace.derived.host_timeline import HostTimeline
from torchfx.profiler.trace.derived.ownership import own_frames
from torchfx.profiler.trace.model.intervals import Intervals
from torchfx.profiler.trace.model.trace import Trace

__all__ = ["python_lines"]


def python_lines(trace: Trace, when: Intervals, limit: int = 3) -> tuple[Evidence, ...]:
    """The functions of the program in which its loop's thread spent these stretches, the most time first.

    A call into a library counts for the line of the program that made it. Empty without Python stacks.
    """
    if not trace.has_stacks or not len(when):
        return ()
    events = trace.events
    _, rows, starts, ends = HostTimeline.of(events, trace.frames, trace.main_lane).pieces(when.starts, when.ends)
    own = np.where((rows >= 0) & (ends > starts), trace.derived(own_frames)[rows], -1)
    rows, starts, ends = own[own >= 0], starts[own >= 0], ends[own >= 0]
    names, which = np.unique(events.name[rows], return_inverse=True)
    spent = np.bincount(which, (ends - starts).astype(np.float64), minlength=len(names))
    texts = [events.texts[int(name)] for name in names]
    found = []
    for i in most_first(spent, texts)[:limit]:
        mine = which == i
        found.append(
            Evidence(
                texts[i],
                len(np.unique(rows[mine])),
                float(spent[i]) / 1000,
                int(starts[mine].min()) / 1000,
                trace.lane(int(rows[mine][0])).label,
                note="Python between operators",
                rows=np.unique(rows[mine]).astype(np.int32),
            )
        )
    return tuple(found)
