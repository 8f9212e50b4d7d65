"""Which lines of Python the time between operators belongs to, where stacks were recorded."""

from __future__ import annotations

from typing import Final

import numpy as np

from torchfx.profiler.finding import Evidence
from torchfx.profiler.trace.derived.host_timeline import HostTimeline
from torchfx.profiler.trace.derived.ownership import stack_of
from torchfx.profiler.trace.meaning.frames import own_frame
from torchfx.profiler.trace.meaning.kinds import Kind
from torchfx.profiler.trace.model.intervals import Intervals
from torchfx.profiler.trace.model.trace import Trace

__all__ = ["python_lines"]

_FRAMES: Final = 5000
"""So many of the frames with the most time are looked at."""


def python_lines(trace: Trace, when: Intervals, limit: int = 3) -> tuple[Evidence, ...]:
    """The functions of the program in which its loop's thread spent these stretches, the most time first.

    A call into a library counts for the line of the program that made it. Empty without Python stacks.
    """
    if not trace.has_stacks or not len(when):
        return ()
    events = trace.events
    _, rows, starts, ends = HostTimeline.of(events, trace.frames, trace.main_lane).pieces(when.starts, when.ends)
    known = (rows >= 0) & (ends > starts)
    frames, which = np.unique(rows[known], return_inverse=True)
    spent = np.bincount(which, (ends - starts)[known].astype(np.float64), minlength=len(frames))
    first = np.full(len(frames), np.iinfo(np.int64).max)
    np.minimum.at(first, which, starts[known])
    lines: dict[str, list[int]] = {}
    for i in np.argsort(-spent, kind="stable")[:_FRAMES].tolist():
        row = int(frames[i])
        itself = [trace.name(row)] if events.kind[row] == Kind.PYTHON else []
        line = own_frame([*itself, *stack_of(trace, row)])
        if line:
            lines.setdefault(line, []).append(i)
    found = [
        Evidence(
            line,
            len(chosen),
            float(spent[chosen].sum()) / 1000,
            int(first[chosen].min()) / 1000,
            trace.lane(int(frames[chosen[0]])).label,
            note="Python between operators",
        )
        for line, chosen in lines.items()
    ]
    return tuple(sorted(found, key=lambda item: -(item.time_us or 0.0))[:limit])
