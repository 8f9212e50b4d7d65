"""Differences between one step and others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from torchwhy.trace.derived.host_activity import outer_operators
from torchwhy.trace.derived.idle import closing_wait, idle_time
from torchwhy.trace.file.columns import Int32, Int64
from torchwhy.trace.meaning.annotations import GARBAGE_COLLECTION, NEXT_BATCH, OPTIMIZER
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.runtime import MEMORY_CALL, MODULE_LOADING, SYNCHRONIZE
from torchwhy.trace.model.steps import Step
from torchwhy.trace.model.trace import Trace

__all__ = ["longer_in", "operators_in", "unhurried"]


_ENOUGH: Final = 50
"""At most about this number of other steps is compared; they show the usual time."""


def operators_in(trace: Trace, steps: Sequence[Step]) -> Int64:
    """How many operators begin in each step."""
    times = trace.events.ts[trace.events.rows(Kind.OPERATOR)]
    starts, ends = [step.start for step in steps], [step.end for step in steps]
    found: Int64 = np.searchsorted(times, ends) - np.searchsorted(times, starts)
    return found


def unhurried(trace: Trace, steps: Sequence[Step]) -> Int64:
    """How long each step kept its user waiting, nanoseconds.

    On a GPU that is the time in which the device had nothing to do, and the work the step gave it. A host that waits
    until the device has caught up takes long over such a step, and nothing is lost.
    """
    starts = np.array([step.start for step in steps], np.int64)
    ends = np.array([step.end for step in steps], np.int64)
    if not trace.has_gpu:
        return ends - starts
    launch = trace.links.launch
    known = launch >= 0
    times, spent = trace.events.ts[launch[known]], trace.events.dur[trace.links.work[known]]
    order = np.argsort(times, kind="stable")
    before = np.concatenate(([0], np.cumsum(spent[order])))
    given = before[np.searchsorted(times[order], ends)] - before[np.searchsorted(times[order], starts)]
    found: Int64 = trace.derived(idle_time).overlap(starts, ends) + given
    return found


def longer_in(trace: Trace, step: Step, others: Sequence[Step]) -> tuple[Int32, np.ndarray]:
    """Return the calls that took longer in one step than usual, with the surplus of each name spread over its calls."""
    events = trace.events
    outer = trace.derived(outer_operators)
    notes = events.of(NEXT_BATCH | OPTIMIZER | GARBAGE_COLLECTION)
    calls = events.of(MEMORY_CALL | MODULE_LOADING | SYNCHRONIZE)
    calls = calls[calls != trace.derived(closing_wait)]
    rows = np.concatenate((outer, notes, calls, events.rows(Kind.OVERHEAD))).astype(np.int32)
    others = others[:: len(others) // _ENOUGH + 1]
    names, which = np.unique(events.name[rows], return_inverse=True)
    spent = np.zeros((len(others), len(names)))
    for i, other in enumerate(others):
        inside = events.begin_in(rows, other.start, other.end)
        np.add.at(spent[i], which[inside], events.dur[rows[inside]])
    usual = np.median(spent, axis=0) if len(others) else np.zeros(len(names))
    here = events.begin_in(rows, step.start, step.end)
    mine = np.bincount(which[here], events.dur[rows[here]].astype(np.float64), minlength=len(names))
    surplus = mine - usual
    large = np.flatnonzero(surplus > 0.1 * max(step.duration - np.median([o.duration for o in others] or [0]), 1))
    chosen = here & np.isin(which, large)
    part = np.maximum(surplus[which[chosen]] / np.maximum(mine[which[chosen]], 1), 0)
    return rows[chosen], (events.dur[rows[chosen]] * part).astype(np.int64)
