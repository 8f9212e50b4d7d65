"""Graphs of autograd that grow from step to step."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.file.columns import Int32, Int64
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.operators import AUTOGRAD_NODE
from torchwhy.trace.model.steps import Step, main_phase
from torchwhy.trace.model.trace import Trace

__all__ = ["growing_graph"]


@rule(
    "B27",
    "growing-graph",
    source="nodes of the backward pass against operators of the forward pass, per step",
    frees="all",
)
def growing_graph(trace: Trace, *, steps: int = 3, growth: float = 1.05, alike: float = 1.02) -> Iterator[Finding]:
    """The backward pass grows from step to step, the forward pass doesn't.

    Sees: over three steps or more, each of which runs more nodes of autograd than the one before, 5% more at the end
    than at the beginning, while the operators outside of the backward pass stay as many (within 2%), those that others
    call included.

    Costs: every step goes back through all steps before it, and keeps their tensors: time and memory grow without end.
    At stake is the time of the nodes that earlier steps left, as many as the steps so far have added; it grows further
    with every step.

    Fix: `detach()` values that one step passes to the next (hidden state, running loss), `loss.item()` for numbers only
    logged, and no `retain_graph=True` around a loop.

    Known problems: a graph that is kept and never gone back through shows in the memory only: record with --memory and
    see memory-creep. Sequences that become longer from step to step are left out by their operators: one call of a
    recurrent layer on a processor runs operators for each time step.
    """
    found = main_phase(trace.steps_found)
    if len(found) < steps:
        return
    events = trace.events
    nodes = events.of(AUTOGRAD_NODE)
    operators = np.flatnonzero((events.kind == Kind.OPERATOR) & (events.lane == trace.main_lane)).astype(np.int32)
    operators = operators[~trace.calls.within(operators, nodes)]
    back, forward = _per_step(trace, found, nodes), _per_step(trace, found, operators)
    if not back[0] or not (np.diff(back) > 0).all() or back[-1] < growth * back[0]:
        return
    if not forward.min() or forward.max() > alike * forward.min():
        return
    busy = events.times_of(nodes)
    spent = busy.overlap([step.start for step in found], [step.end for step in found])
    more = int((spent * _left_over(found, back) / back).sum())
    counts = ", ".join(f"{count:,}" for count in (back if len(back) <= 4 else (*back[:3], back[-1])))
    last = nodes[(events.ts[nodes] >= found[-1].start) & (events.ts[nodes] < found[-1].end)]
    yield Finding(
        title=f"The backward pass grows from step to step: {counts} nodes; the forward pass doesn't",
        confidence="high",
        time_us=more / 1000,
        stretches=busy.clip(trace.window.start, trace.window.end),
        window=trace.window,
        evidence=evidence(trace, last, note=f"in {found[-1].name}"),
        cause="A value kept from one step refers to that step's graph, and the next step's loss to that value: the "
        f"operators of the forward pass stay at {int(np.median(forward)):,} per step.",
        fix="detach() values that one step passes to the next (hidden state, running loss); loss.item() for numbers "
        "only logged; no retain_graph=True around the loop.",
        linked=True,
    )


def _left_over(steps: tuple[Step, ...], nodes: Int64) -> Int64:
    """How many of each step's nodes earlier steps left: those before the recording too, if each added as many."""
    added = float(np.median(np.diff(nodes)))
    before = added * (steps[0].number or 0)
    if before >= nodes[0]:  # the steps were counted from elsewhere
        before = 0.0
    found: Int64 = np.round(nodes - nodes[0] + before).astype(np.int64)
    return found


def _per_step(trace: Trace, steps: tuple[Step, ...], rows: Int32) -> Int64:
    """How many of these events begin in each step."""
    times = np.sort(trace.events.ts[rows])
    found: Int64 = np.searchsorted(times, [step.end for step in steps]) - np.searchsorted(
        times, [step.start for step in steps]
    )
    return found
