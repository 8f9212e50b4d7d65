"""Long stretches between operators that come back, where no steps separate a program's loop from its set-up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from torchwhy.finding import Evidence
from torchwhy.trace.derived.host_activity import outer_operators
from torchwhy.trace.file.columns import Int32, Int64
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace

__all__ = ["Recurring", "recurring"]


@dataclass(frozen=True)
class Recurring:
    """Stretches, each with the operators of the main thread around it.

    Attributes:
        times: when; every stretch has an entry in the other two.
        before, after: rows of the operators around each.
    """

    times: Intervals
    before: Int32
    after: Int32

    def evidence(self, trace: Trace, within: Intervals, limit: int = 3) -> tuple[Evidence, ...]:
        """The stretches by the names of the operators around them, the most time first; only what lies `within`."""
        spent = within.overlap(self.times.starts, self.times.ends)
        found = []
        for rows in _alike(trace, self.before, self.after):
            first = int(rows[np.argmax(spent[rows])])
            before, after = int(self.before[first]), int(self.after[first])
            found.append(
                Evidence(
                    f"from {trace.name(before)} to {trace.name(after)}",
                    len(rows),
                    int(spent[rows].sum()) / 1000,
                    int(self.times.starts[first]) / 1000,
                    trace.lane(after).label,
                )
            )
        return tuple(sorted(found, key=lambda item: -(item.time_us or 0.0))[:limit])


def recurring(trace: Trace, stretches: Intervals, times: int = 3, longest: float = 10.0) -> Recurring:
    """Keep the stretches without operators that come back between operators of the same names.

    Set-up, a first call or a checkpoint happen once: such a stretch is rarely found `times` times, and one that is
    `longest` times as long as the others (median) is something else than they are.
    """
    outer = trace.derived(outer_operators)
    outer = outer[trace.events.lane[outer] == trace.main_lane]
    place = np.searchsorted(trace.events.ts[outer], stretches.starts, "right")
    inside = (place > 0) & (place < len(outer))
    starts, ends, place = stretches.starts[inside], stretches.ends[inside], place[inside]
    before, after = outer[place - 1], outer[place]
    kept = np.zeros(len(place), np.bool_)
    for rows in _alike(trace, before, after):
        lengths = (ends - starts)[rows]
        kept[rows] = (len(rows) >= times) & (lengths <= longest * np.median(lengths))
    return Recurring(Intervals(starts[kept], ends[kept]), before[kept], after[kept])


def _alike(trace: Trace, before: Int32, after: Int32) -> list[Int64]:
    """Positions of the pairs, together where both names are the same."""
    if not len(before):
        return []
    name = trace.events.name
    names = np.stack((name[before], name[after]))
    _, which = np.unique(names, axis=1, return_inverse=True)
    order = np.argsort(which.reshape(-1), kind="stable")
    return np.split(order, np.cumsum(np.bincount(which.reshape(-1)))[:-1])
