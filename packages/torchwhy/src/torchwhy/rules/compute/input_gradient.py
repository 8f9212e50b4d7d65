"""Gradients of a model's input that nothing reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import ForwardPass, backward_of, forward_pass, work_of
from torchwhy.trace.derived.shapes import Shape, shapes, tensor_lists
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.annotations import OPTIMIZER_STEP
from torchwhy.trace.meaning.arithmetic import CONVOLUTION, LINEAR
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.operators import LEAF_GRADIENT
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["input_gradient"]

OF_LAYER: Final = 0.7
"""The share of a first layer's backward pass that the gradient of its input takes. One program, whose convolution has 3
channels, 64 outputs and 11 x 11 weights, saved 0.69 of that pass without the gradient, on a processor. In a linear
layer it is one of two products of the same size."""


@rule("D45", "input-gradient", source="a leaf with the shape of a layer's input receives a gradient", frees="device")
def input_gradient(trace: Trace, *, share: float = 0.05) -> Iterator[Finding]:
    """The backward pass computes a gradient of the model's input, which nothing reads.

    Sees: in a program with an optimizer, `torch::autograd::AccumulateGrad` of a tensor with the shape of a linear
    layer's or convolution's input, in as many steps as the layer runs. No layer's weight has that shape, no operator
    reads such a tensor between that gradient and the optimizer's step, and the optimizer updates none. The backward
    pass of these layers takes 5% of the window or more.

    Costs: a product or a convolution as large as the layer's own. At stake is 70% of the layer's backward pass.

    Fix: make the input without `requires_grad`: take `requires_grad=True`, `requires_grad_()` or the old
    `Variable(x, requires_grad=True)` away.

    Known problems: a gradient that is read only after the optimizer's step looks unread.
    """
    program, window, events = trace.derived(forward_pass), trace.derived(steady_window), trace.events
    leaves = events.of(LEAF_GRADIENT)
    leaves = leaves[events.begin_in(leaves, window.start, window.end)]
    updates = events.of(OPTIMIZER_STEP)
    if not len(leaves) or not len(updates):
        return
    layers = np.flatnonzero(events.are(LINEAR | CONVOLUTION, program.rows)).tolist()
    weights = {shape for i in layers for shape in program.shapes[i][1:]}
    inputs = {program.shapes[i][0] for i in layers if program.shapes[i]} - weights
    gradients = {int(row): shapes(trace, int(row))[:1] for row in leaves}
    for shape in sorted(inputs & {one[0] for one in gradients.values() if one}):
        mine = np.array([row for row, taken in gradients.items() if taken == [shape]], np.int32)
        using = [i for i in layers if program.shapes[i][:1] == [shape]]
        if len(using) > len(mine) or _read(trace, program, mine, updates, shape) or _updated(trace, updates, shape):
            continue
        rows = program.rows[using]
        when = work_of(trace, backward_of(trace, rows))
        part = window.share(when)
        if part < share:
            continue
        size = " x ".join(map(str, shape))
        yield Finding(
            title=f"No operator reads the gradient of the input ({size}) before the optimizer's step: "
            f"{percent(part)} of the time",
            confidence="medium",
            time_us=OF_LAYER * when.total / 1000,
            stretches=when,
            window=window,
            evidence=evidence(trace, rows),
            cause="The input requires a gradient, so that the first layer's backward pass computes it along with the "
            "weights' gradients.",
            fix="Make the input without a gradient: take requires_grad=True or requires_grad_() away where the batch "
            "is made.",
            linked=False,
        )


def _read(trace: Trace, program: ForwardPass, leaves: Int32, updates: Int32, shape: Shape) -> bool:
    """Whether an operator reads a tensor of a shape between a leaf's gradient and the optimizer's next step."""
    events = trace.events
    begins = np.sort(events.ts[updates])
    ends = events.end[leaves]
    following = np.searchsorted(begins, ends)
    until = np.append(begins, trace.window.end)[following]
    reads = program.rows[[i for i, taken in enumerate(program.shapes) if shape in taken]]
    at = events.ts[reads]
    return bool(((at[:, None] >= ends[None]) & (at[:, None] < until[None])).any())


def _updated(trace: Trace, updates: Int32, shape: Shape) -> bool:
    """Whether an operator of the optimizer takes a tensor of a shape."""
    rows = trace.events.rows(Kind.OPERATOR)
    rows = rows[trace.calls.within(rows, updates)]
    texts = np.unique(trace.events.text_ids("Input Dims", rows), return_index=True)[1]
    return any(
        shape in shapes(trace, int(row)) or any(shape in each for each in tensor_lists(trace, int(row)))
        for row in rows[texts]
    )
