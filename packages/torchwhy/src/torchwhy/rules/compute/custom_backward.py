"""Backward passes of the program's own functions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.autograd import autograd
from torchwhy.trace.derived.forward_pass import work_of
from torchwhy.trace.derived.shapes import Shape, elements, shapes
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.communication import EXCHANGE
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.operators import BACKWARD, CUSTOM_NODE
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import enumeration, percent

__all__ = ["custom_backward"]

GROWN = 8
"""A tensor with at least this many times the elements of the gradient represents a matrix of derivatives."""


@rule(
    "D38",
    "slow-custom-backward",
    source="nodes of torch.autograd.Function against the calls they belong to",
    frees="device",
)
def custom_backward(trace: Trace, *, times: float = 5.0, share: float = 0.1) -> Iterator[Finding]:
    """The backward of a custom autograd function takes many times as long as its forward.

    Sees: nodes of the backward pass that belong to a `torch.autograd.Function` of the program, and take five times as
    long as its forward together, and 10% of the window or more. Functions that exchange data between ranks are left
    out.

    Costs: a formula for a gradient takes about twice the forward's time. One that writes out the matrix of derivatives
    takes time and memory that grow with the square of the size.

    Fix: the product of the gradient with the derivative, in closed form: for `y = softmax(x)`
    `y * (grad - (y * grad).sum(-1, keepdim=True))` instead of the Jacobian. Or plain operators, without a function of
    the program's own, and autograd.

    Known problems: a function whose forward does little and keeps its work for the backward looks the same.
    """
    events, window, pairs = trace.events, trace.derived(steady_window), trace.derived(autograd)
    chosen = events.are(CUSTOM_NODE, pairs.backward) & trace.in_steps(pairs.backward)
    chosen &= events.begin_in(pairs.backward, window.start, window.end)
    nodes, forward = pairs.backward[chosen], pairs.forward[chosen]
    if not len(nodes) or trace.calls.within(events.of(EXCHANGE), nodes).any():
        return
    slow = np.zeros(len(nodes), np.bool_)
    for name in np.unique(events.name[nodes]).tolist():
        same = events.name[nodes] == name
        slow[same] = work_of(trace, nodes[same]).total > times * work_of(trace, forward[same]).total
    nodes, forward = nodes[slow], forward[slow]
    when, needed = work_of(trace, nodes), work_of(trace, forward)
    part = window.share(when.clip(window.start, window.end))
    if not len(nodes) or not needed.total or part < share:
        return
    names = sorted({trace.name(row).rpartition(" ")[2] for row in nodes.tolist()})
    inner = events.rows(Kind.OPERATOR)
    inner = inner[trace.calls.within(inner, nodes) & ~events.are(BACKWARD, inner)]
    inner = inner[events.are(BACKWARD, trace.calls.parent[inner])]  # what the function calls itself
    yield Finding(
        title=f"{enumeration(names)} takes {when.total / needed.total:.0f} times as long as its forward: "
        f"{percent(part)} of the time",
        confidence="medium",
        time_us=(when.total - needed.total) / 1000,
        stretches=when,
        window=window,
        evidence=(*evidence(trace, nodes, limit=1), *evidence(trace, inner, limit=3)),
        cause="The program's own backward computes more than a gradient needs, about twice the forward."
        + _grown(trace, nodes),
        fix="Write the product of gradient and derivative in closed form, without a matrix of derivatives (softmax: "
        "y * (grad - (y * grad).sum(-1, keepdim=True))), or leave it to autograd: plain operators need no Function.",
        linked=True,
    )


def _grown(trace: Trace, nodes: Int32) -> str:
    """A sentence on a tensor inside that is much larger than the gradient that comes in; "" without one."""
    row = int(nodes[np.argmax(trace.events.dur[nodes])])
    inside = trace.calls.inside(row).tolist()
    taken: list[Shape] = next((found for one in inside if (found := shapes(trace, one))), [])
    largest = max((shape for one in inside for shape in shapes(trace, one)), key=elements, default=())
    if not taken or elements(largest) < GROWN * elements(taken[0]):
        return ""
    return f" It works on tensors of {list(largest)}, and the gradient has {list(taken[0])}."
