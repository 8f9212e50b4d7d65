"""A model that runs twice in a step of training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import ForwardPass, differentiated, forward_pass
from torchwhy.trace.derived.shapes import Shape
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.file.columns import Flags, Int64
from torchwhy.trace.meaning.annotations import OPTIMIZER_STEP
from torchwhy.trace.meaning.arithmetic import CONVOLUTION, LINEAR
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["second_forward_pass"]

OFTEN: Final = 0.75
"""If it happens in at least this share of the steps, it happens in each."""


@rule(
    "B43",
    "second-forward-pass",
    source="forward passes whose sequence numbers no node of a backward pass has",
    frees="all",
)
def second_forward_pass(trace: Trace, *, layers: int = 2, share: float = 0.1) -> Iterator[Finding]:
    """A model runs twice in each step of training, and only one of the two passes is trained on.

    Sees: in three quarters of the steps of an optimizer or more, `aten::linear` and convolutions that record a graph
    without a node in the backward pass. Among them is each such layer that has a node, with inputs and weight of the
    same shapes; there are two layers or more. The second pass takes 10% of the window or more.

    Costs: a forward pass, often for a metric or a message that could use the outputs of the training pass. Its graph is
    recorded without need.

    Fix: keep the outputs of the training pass, and compute the metric from these. What another model computes, such as
    a teacher or a target network, belongs under `torch.no_grad()`.

    Known problems: weights are known by their shapes, so a copy of the model (a target network that records a graph)
    looks the same. Its pass is needed: `torch.no_grad()` then saves only the graph.
    """
    program, window, events = trace.derived(forward_pass), trace.derived(steady_window), trace.events
    updates = events.of(OPTIMIZER_STEP)
    updates = updates[events.begin_in(updates, window.start, window.end)]
    if len(updates) < 2:
        return
    trained = differentiated(trace, program.rows)
    layer = events.are(LINEAR | CONVOLUTION, program.rows)
    alone = layer & ~trained & _recorded(trace, program)
    between = np.searchsorted(events.ts[updates], events.ts[program.rows])
    found: list[Int64] = []
    for i in np.unique(between).tolist():
        mine = np.flatnonzero(between == i)
        needed, second = _layers(program, mine[(layer & trained)[mine]]), mine[alone[mine]]
        if needed.total() >= layers and not needed - _layers(program, second):
            passed = mine[(mine >= second[0]) & (mine <= second[-1]) & ~trained[mine]]
            found.extend(np.split(passed, np.flatnonzero(np.diff(passed) > 1) + 1))
    if len({int(between[run[0]]) for run in found}) < OFTEN * len(updates):
        return
    when = Intervals.union(
        [events.ts[program.rows[run[0]]] for run in found], [events.end[program.rows[run[-1]]] for run in found]
    )
    part = window.share(when.clip(window.start, window.end))
    if part < share:
        return
    rows = program.rows[np.concatenate(found)]
    yield Finding(
        title=f"The same layers run a second time in each step, and no backward pass uses that: {percent(part)} of the "
        "time",
        confidence="medium",
        stretches=when,
        window=window,
        evidence=evidence(trace, rows[events.are(LINEAR | CONVOLUTION, rows)]),
        cause="Inputs and weights have the shapes of those that are trained on: the model is probably called again for "
        "a metric or a message.",
        fix="Call the model once, and compute the metric from the outputs that the loss was computed from. If another "
        "model runs there (a teacher, a target network), put it under torch.no_grad().",
        linked=False,
    )


def _layers(program: ForwardPass, places: Int64) -> Counter[tuple[Shape, ...]]:
    """How many calls have the same shapes of input and weight."""
    return Counter(tuple(program.shapes[k][:2]) for k in places.tolist())


def _recorded(trace: Trace, program: ForwardPass) -> Flags:
    """Whether an operator makes nodes of a graph: the next one shows a higher number than it did itself."""
    numbers = trace.events.integers("Sequence number", program.rows)
    known = np.flatnonzero(numbers >= 0)
    found = np.zeros(len(numbers), np.bool_)
    found[known[:-1]] = np.diff(numbers[known]) > 0
    return found
