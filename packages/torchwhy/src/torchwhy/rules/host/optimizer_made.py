"""An optimizer that is made again in each step."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.idle import at_stake
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.meaning.annotations import OPTIMIZER_STEP
from torchwhy.trace.meaning.frames import OPTIMIZER_MADE
from torchwhy.trace.meaning.operators import ACCUMULATE_GRADIENT, MOMENT
from torchwhy.trace.meaning.tensors import MAKE_ZEROS
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["optimizer_each_step"]


@rule("B37", "optimizer-each-step", source="state that an optimizer makes in its first step only", frees="host")
def optimizer_each_step(trace: Trace, *, steps: int = 3) -> Iterator[Finding]:
    """The optimizer is made again in every step.

    Sees: three or more steps of an optimizer, in each of which it makes as many tensors of zeros as gradients were
    accumulated, or more: the state that it otherwise makes in its first step alone; or, in a recording with stacks,
    `__init__` of an optimizer once for each of its steps. At stake is the time of making state and optimizer; on a
    GPU only the part during which the device waits.

    Costs: the state is made and filled each time. Worse, it is lost: Adam without its moments is no Adam, and momentum
    has no effect.

    Fix: make the optimizer once, before the loop. To set a learning rate: `group["lr"] = ...` for
    `optimizer.param_groups`, or a scheduler.

    Known problems: without stacks an optimizer without state, such as SGD without momentum, isn't seen. Inner loops of
    meta-learning, which need a new optimizer for each task, are reported where they take a single step.
    """
    events, window = trace.events, trace.derived(steady_window)
    updates = events.of(OPTIMIZER_STEP)
    updates = updates[events.begin_in(updates, window.start, window.end)]
    if len(updates) < steps:
        return
    zeros, gradients, made = events.of(MAKE_ZEROS), events.of(ACCUMULATE_GRADIENT), events.of(OPTIMIZER_MADE)
    made = trace.frames.outermost_of_name(made)
    zeros = zeros[events.begin_in(zeros, window.start, window.end)]
    inside = np.searchsorted(events.ts[updates], events.ts[zeros], "right") - 1
    within = (inside >= 0) & (events.ts[zeros] < events.end[updates][inside]) if len(zeros) else np.zeros(0, np.bool_)
    zeros, inside = zeros[within], inside[within]
    per_step = np.bincount(inside, minlength=len(updates))
    ready = np.searchsorted(np.sort(events.ts[gradients]), events.ts[updates])
    accumulated = np.diff(ready, prepend=0)[1:]
    restarted = bool((accumulated > 0).all()) and bool((per_step[1:] >= accumulated).all())
    made = made[events.begin_in(made, window.start, window.end)]
    classes = len(np.unique(events.name[made]))
    if not restarted and not (classes and len(made) >= classes * (len(updates) - 1)):
        return
    rows = np.concatenate((made, zeros if restarted else zeros[:0]))
    last = np.flatnonzero(np.diff(inside, append=len(updates)))  # of each step's tensors of zeros
    before = Intervals.union(events.ts[updates[inside[last]]], events.end[zeros[last]])
    apart = (
        restarted and not events.covered(events.of(MOMENT), before).any()
    )  # the state is made before any of it is used
    when = (events.times_of(rows) | before) if apart else events.times_of(rows)
    when = when.clip(window.start, window.end)
    part = window.share(at_stake(trace, when))
    yield Finding(
        title=f"The optimizer is made again in each of {len(updates)} steps: {percent(part)} of the time, and its "
        "state is lost",
        severity="high" if part >= 0.2 else "medium",  # its state is lost, whatever the time
        confidence="high" if len(made) else "medium",
        stretches=when,
        window=window,
        evidence=evidence(trace, rows),
        cause="Each step begins with a new optimizer, which makes its state (moments, momentum) of zeros again.",
        fix="Make the optimizer once, before the loop. For another learning rate set it in optimizer.param_groups, or "
        "use a scheduler.",
        linked=bool(len(made)),
    )
