"""Validation in every step of training."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import ForwardPass, differentiated, forward_pass
from torchwhy.trace.derived.shapes import Shape, elements
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.meaning.annotations import OPTIMIZER_STEP
from torchwhy.trace.meaning.arithmetic import CONVOLUTION, LINEAR
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["validation_each_step"]

OFTEN: Final = 0.75
"""If it happens in at least this share of the steps, it happens in each."""

BATCHES: Final = 4
"""Batches of a validation for each one that is trained, unless they are larger. Fewer may be targets of the loss:
double Q-learning asks two networks of one form about the next states."""


@rule(
    "B35", "validation-each-step", source="forward passes without a graph between steps of the optimizer", frees="all"
)
def validation_each_step(trace: Trace, *, larger: float = 2.0, share: float = 0.1) -> Iterator[Finding]:
    """The model that is trained runs without gradients, on more data, in every step.

    Sees: between steps of an optimizer, in three quarters of them or more, `aten::linear` and convolutions without a
    node in the backward pass, with all the weights (by their shapes) that those with a node have. One of them takes
    twice the inputs of any in training or more, or there are four times as many that take as much. From the first to
    the last of such calls takes 10% of the window or more.

    Costs: a validation over much data in each step takes longer than the training.

    Fix: validate every N steps or once per epoch, or on a sample of the data.

    Known problems: a pass that chooses or labels the samples to be trained on is needed in each step. Weights are known
    by their shapes: a teacher of the same size with larger inputs looks the same.
    """
    program, window, events = trace.derived(forward_pass), trace.derived(steady_window), trace.events
    updates = events.of(OPTIMIZER_STEP)
    updates = updates[events.begin_in(updates, window.start, window.end)]
    if len(updates) < 2:
        return
    graph = differentiated(trace, program.rows)
    weighty = events.are(LINEAR | CONVOLUTION, program.rows)
    between = np.searchsorted(events.ts[updates], events.ts[program.rows])
    found: dict[int, list[int]] = {}
    for i in np.unique(between).tolist():
        mine = np.flatnonzero(between == i)
        trained, alone = mine[weighty[mine] & graph[mine]].tolist(), mine[weighty[mine] & ~graph[mine]].tolist()
        if _validates(_inputs(program, trained), _inputs(program, alone), larger):
            weights = set(_inputs(program, trained))
            same = [k for k in alone if len(program.shapes[k]) > 1 and program.shapes[k][1] in weights]
            found[i] = mine[(mine >= same[0]) & (mine <= same[-1]) & ~graph[mine]].tolist()
    if len(found) < OFTEN * len(updates):
        return
    when = Intervals.union(
        [events.ts[program.rows[places[0]]] for places in found.values()],
        [events.end[program.rows[places[-1]]] for places in found.values()],
    )
    part = window.share(when.clip(window.start, window.end))
    if part < share:
        return
    rows = program.rows[[place for places in found.values() for place in places]]
    yield Finding(
        title=f"The model is evaluated in every step of training, on more data than it is trained on: {percent(part)} "
        "of the time",
        confidence="medium",
        stretches=when,
        window=window,
        evidence=evidence(trace, rows),
        cause="Between two steps of the optimizer the same layers run without a graph, on larger or more batches, as "
        "in a validation.",
        fix="Validate every N steps or once per epoch, or on a sample of the data.",
    )


def _inputs(program: ForwardPass, places: Sequence[int]) -> dict[Shape, list[int]]:
    """The sizes of the inputs by the shape of the weight."""
    found: defaultdict[Shape, list[int]] = defaultdict(list)
    for taken in (program.shapes[k] for k in places):
        if len(taken) > 1:
            found[taken[1]].append(elements(taken[0]))
    return found


def _validates(trained: dict[Shape, list[int]], alone: dict[Shape, list[int]], larger: float) -> bool:
    """Whether the passes without a graph go through all trained weights, with more data."""
    if not trained or not set(trained) <= set(alone):
        return False
    wider = all(max(alone[weight]) >= larger * max(sizes) for weight, sizes in trained.items())
    as_large = {weight: [size for size in alone[weight] if size >= max(sizes)] for weight, sizes in trained.items()}
    oftener = all(len(as_large[weight]) >= BATCHES * len(sizes) for weight, sizes in trained.items())
    more = all(sum(alone[weight]) >= larger * sum(sizes) for weight, sizes in trained.items())
    return (wider and more) or oftener
