"""How long ranks wait for one another in the collectives they have in common."""

from __future__ import annotations

import numpy as np

from torchfx.profiler.ranks.matching import Matched
from torchfx.profiler.trace.file.columns import Flags, Floats
from torchfx.profiler.trace.model.intervals import Intervals

__all__ = ["waited_for", "waiting"]


def waited_for(m: Matched) -> Flags:
    """Entries whose collective is complete and made its ranks wait 10 us and 10% of it, or more."""
    if not len(m.instance):
        return np.zeros(0, np.bool_)
    longest = np.maximum.reduceat(m.waited, m.firsts)[m.instance]
    found: Flags = (
        m.complete & (longest >= 10_000) & (10 * longest >= np.maximum.reduceat(m.duration, m.firsts)[m.instance])
    )
    return found


def waiting(m: Matched, ranks: int) -> tuple[Floats, Floats]:
    """How long ranks waited for each rank, on average over those that did, and how long each waited; nanoseconds.

    A rank waits at the beginning of a collective. Where several run side by side on a rank, that time counts once.
    """
    whose = np.zeros(int(m.instance.max()) + 1 if len(m.instance) else 0, np.int64)
    whose[m.instance[m.last]] = m.rank[m.last]
    lost, others, waits = np.zeros(ranks), np.zeros(ranks), np.zeros(ranks)
    rows = np.flatnonzero(waited_for(m) & ~m.last)
    start, end, last = m.start, m.start + m.waited, whose[m.instance]
    for rank in range(ranks):
        mine = rows[m.rank[rows] == rank]
        waits[rank] = Intervals.union(start[mine], end[mine]).total
        for late in np.unique(last[mine]).tolist():
            same = mine[last[mine] == late]
            lost[late] += Intervals.union(start[same], end[same]).total
            others[late] += 1
    return lost / np.maximum(others, 1), waits
