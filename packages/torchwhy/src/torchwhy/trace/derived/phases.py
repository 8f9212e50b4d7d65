"""The phases of training, as the host goes through them: forward pass, backward pass, optimizer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from torchwhy.trace.derived.host_activity import backward_calls, otherwise_engaged, outer_operators
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.meaning.annotations import OPTIMIZER_STEP, ZERO_GRAD
from torchwhy.trace.meaning.operators import BACKWARD
from torchwhy.trace.model.intervals import Intervals

if TYPE_CHECKING:
    from torchwhy.trace.model.trace import Trace

__all__ = ["training_phases"]


def training_phases(trace: Trace) -> dict[str, Intervals]:
    """When the host was in each phase, within the window, by a name that completes "in ...".

    The backward pass lasts from its first node to its last, as long as the program calls no other operator between
    them. The forward pass is the rest of the steps, from its first operator on. Empty
    for a program without a backward pass.
    """
    events, window = trace.events, trace.derived(steady_window)
    nodes = events.times_of(events.of(BACKWARD)) | trace.derived(backward_calls)
    if not len(nodes):
        return {}
    outer = trace.derived(outer_operators)
    called = outer[(events.lane[outer] == trace.main_lane) & ~events.are(BACKWARD, outer)]
    begins = np.sort(events.ts[called[events.covered(called, nodes) == 0]])
    between = nodes.gaps()
    alone = np.searchsorted(begins, between.starts) == np.searchsorted(begins, between.ends)
    optimizer = events.times_of(events.of(OPTIMIZER_STEP | ZERO_GRAD))
    backward = (nodes | Intervals(between.starts[alone], between.ends[alone])) - optimizer
    steps = Intervals.union([step.start for step in trace.steps_found], [step.end for step in trace.steps_found])
    before = np.concatenate((steps.starts, optimizer.ends))
    first = np.searchsorted(begins, before)
    before, first = before[first < len(begins)], first[first < len(begins)]
    forward = steps - backward - optimizer - trace.derived(otherwise_engaged) - Intervals.union(before, begins[first])
    found = {"the forward pass": forward, "the backward pass": backward, "the optimizer": optimizer}
    return {name: when.clip(window.start, window.end) for name, when in found.items()}
