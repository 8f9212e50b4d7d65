"""Work recorded for a backward pass that never comes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.operators import LEARNING
from torchwhy.trace.model.trace import Trace

__all__ = ["missed_no_grad"]

FEW_NODES = 8


@rule(
    "C15",
    "missed-no-grad",
    source="sequence numbers of autograd's nodes, which only grow while a graph is recorded",
    frees="nothing",
)
def missed_no_grad(trace: Trace, *, passes: float = 2) -> Iterator[Finding]:
    """Inference records a graph for a backward pass.

    Sees: operators whose `Sequence number` grows, so each made a node of autograd's graph, in a trace of two or more
    steps without a backward pass, an optimizer or dropout at work.

    Costs: the tensors each node keeps stay in memory until the result is dropped, and every operator takes longer on
    the host.

    Fix: `with torch.inference_mode():` (or `no_grad`) around the loop; `model.eval()` alone doesn't stop the recording.

    Known problems: a forward pass whose backward pass runs outside the recorded steps looks like inference.
    """
    events = trace.events
    steps = trace.steps_found
    if len(steps) < passes or not events.has("Sequence number"):
        return
    if events.any_of(LEARNING):
        return
    rows = events.rows(Kind.OPERATOR)
    numbers = events.integers("Sequence number", rows)
    inside = (numbers >= 0) & trace.in_steps(rows)
    rows, numbers = rows[inside], numbers[inside]
    step = trace.step_of(rows)
    # A node takes the number shown when its operator begins; the next one shows a higher one.
    nodes = [int(np.ptp(numbers[step == i])) if (step == i).any() else 0 for i in range(len(steps))]
    if min(nodes) < FEW_NODES:
        return
    yield Finding(
        title=f"About {int(np.median(nodes))} operators per step record a graph, and no backward pass follows",
        severity="low",
        confidence="medium",
        window=trace.window,
        evidence=evidence(trace, rows),
        cause="Parameters require gradients and recording is on, so every operator keeps what its gradient would need.",
        fix="If this is inference, put it under torch.inference_mode(); model.eval() alone doesn't stop the recording.",
    )
