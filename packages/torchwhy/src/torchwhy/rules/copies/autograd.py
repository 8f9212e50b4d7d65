"""Work recorded for a backward pass that never comes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.autograd import autograd, graph_makers
from torchwhy.trace.derived.run_times import run_times
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.operators import LEARNING
from torchwhy.trace.model.trace import Trace

__all__ = ["graph_for_nothing", "graph_of_gradients", "missed_no_grad"]

FEW_NODES = 8


def graph_for_nothing(trace: Trace, passes: float = 2) -> tuple[Int32, int]:
    """The operators that record a graph in each step of a trace in which nothing learns, and the usual count of nodes.

    Args:
        trace: what was recorded.
        passes: with fewer steps nothing is known.

    Returns:
        No rows where a backward pass, an optimizer or dropout is at work, the run is known to have an optimizer, or no
        graph is recorded.
    """
    none = np.empty(0, np.int32), 0
    events = trace.events
    steps = trace.steps_found
    if len(steps) < passes or not events.has("Sequence number"):
        return none
    run = trace.derived(run_times)
    if events.any_of(LEARNING) or (run is not None and run.optimizer):
        return none
    rows = events.rows(Kind.OPERATOR)
    numbers = events.integers("Sequence number", rows)
    inside = (numbers >= 0) & trace.in_steps(rows)
    rows, numbers = rows[inside], numbers[inside]
    step = trace.step_of(rows)
    # A node takes the number shown when its operator begins; the next one shows a higher one.
    nodes = [int(np.ptp(numbers[step == i])) if (step == i).any() else 0 for i in range(len(steps))]
    return (rows, int(np.median(nodes))) if min(nodes) >= FEW_NODES else none


@rule(
    "C15",
    "missed-no-grad",
    source="sequence numbers of autograd's nodes, which only grow while a graph is recorded",
    frees="nothing",
)
def missed_no_grad(trace: Trace, *, passes: float = 2) -> Iterator[Finding]:
    """Inference records a graph for a backward pass.

    Sees: operators whose `Sequence number` grows, so each made a node of autograd's graph, in a trace of two or more
    steps without a backward pass, an optimizer or active dropout.

    Costs: the tensors each node keeps stay in memory until the result is dropped, and every operator takes longer on
    the host.

    Fix: `with torch.inference_mode():` (or `no_grad`) around the loop; `model.eval()` alone doesn't stop the recording.

    Known problems: a forward pass whose backward pass runs outside the recorded steps looks like inference, unless
    `torchwhy profile` recorded it and has seen the program's optimizer.
    """
    rows, nodes = graph_for_nothing(trace, passes)
    if not len(rows):
        return
    yield Finding(
        title=f"About {nodes} operators per step record a graph, and no backward pass follows",
        severity="low",
        confidence="medium",
        window=trace.window,
        evidence=evidence(trace, rows),
        cause="Parameters require gradients and recording is on, so every operator keeps what its gradient would need.",
        fix="If this is inference, put it under torch.inference_mode(); model.eval() alone doesn't stop the recording.",
    )


@rule(
    "C17",
    "graph-of-gradients",
    source="sequence numbers of operators in the backward pass, and nodes that have them",
    frees="nothing",
)
def graph_of_gradients(trace: Trace, *, steps: int = 2, nodes: int = 4) -> Iterator[Finding]:
    """The backward pass records a graph of its gradients, and nothing differentiates them.

    Sees: in two steps or more, four nodes of the backward pass or more whose last operator has a sequence number, as
    with `create_graph=True`, and in all of the trace no node that goes back through such an operator.

    Costs: the graph keeps tensors of the backward pass in memory, and each operator of it takes longer on the host.
    After `backward(create_graph=True)` gradients and parameters keep each other in memory, which grows unless the
    gradients are set to None.

    Fix: leave out `create_graph=True`; `retain_graph=True` alone keeps a graph for another pass.

    Known problems: a second derivative that is taken in steps that weren't recorded (a penalty in every 16th step)
    isn't seen.
    """
    makers, through = trace.derived(graph_makers), trace.derived(autograd).forward
    step = trace.step_of(makers)
    counts = np.bincount(step[step >= 0])
    if np.count_nonzero(counts >= nodes) < steps or trace.calls.within(through, makers).any():
        return
    rows = makers[step >= 0]
    count = int(np.median(counts[counts >= nodes]))
    yield Finding(
        title=f"About {count} nodes of the backward pass per step record a graph, and nothing goes back through it",
        severity="low",
        confidence="medium",
        window=trace.window,
        evidence=evidence(trace, rows),
        cause="Gradients are computed with create_graph=True, so each operator of the backward pass keeps what a "
        "second derivative would need.",
        fix="Leave out create_graph=True. Where a second pass goes through the same graph, retain_graph=True keeps it.",
    )
