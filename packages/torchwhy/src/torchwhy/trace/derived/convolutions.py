"""The shapes of what convolutions make: by their strides and paddings, else by the next operator's inputs."""

from __future__ import annotations

import numpy as np

from torchwhy.trace.derived.autograd import autograd
from torchwhy.trace.derived.flops import output_of
from torchwhy.trace.derived.shapes import Shape, shapes, values
from torchwhy.trace.meaning.arithmetic import ADD_IN_PLACE, AFTER_CONVOLUTION, CONVOLUTION_BACKWARD
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.model.trace import Trace

__all__ = ["convolution_output"]


def convolution_output(trace: Trace, row: int) -> Shape:
    """The shape of what a convolution made, or () where the trace does not show it.

    By its stride, padding and dilation, where `Concrete Inputs` were recorded. Else by the gradient its backward pass
    is given; by the addition of its bias; or by a normalisation or activation that follows the convolution on its
    thread and takes as many examples and channels.

    Args:
        row: of the operator, at any depth: `aten::conv2d`, `aten::convolution`, `aten::cudnn_convolution`.
    """
    events, tree = trace.events, trace.calls
    own = shapes(trace, row)
    if len(own) < 2:
        return ()
    if found := output_of(trace.name(row), own, values(trace, row)):
        return found
    wanted = (own[0][0], own[1][0])
    pairs, outer = trace.derived(autograd), row
    for above in (row, *tree.ancestors(row)):
        if events.kind[above] != Kind.OPERATOR:
            break
        if above != row and shapes(trace, above)[:2] != own[:2]:
            break
        outer = above
        for node in pairs.backward_of(above):
            inside = tree.inside(node)
            for gradient in inside[events.are(CONVOLUTION_BACKWARD, inside)].tolist():
                if found := _matching(shapes(trace, gradient), wanted):
                    return found
    inside = tree.inside(outer)
    for added in inside[events.are(ADD_IN_PLACE, inside)].tolist():
        if found := _matching(shapes(trace, added), wanted):
            return found
    following = _next_beside(trace, outer)
    if following >= 0 and AFTER_CONVOLUTION.names(trace.name(following)):
        return _matching(shapes(trace, following), wanted)
    return ()


def _matching(sizes: list[Shape], wanted: tuple[int, int]) -> Shape:
    return sizes[0] if sizes and len(sizes[0]) > 2 and sizes[0][:2] == wanted else ()


def _next_beside(trace: Trace, row: int) -> int:
    """The next operator on a thread, below the same parent, or -1."""
    events, parent = trace.events, int(trace.calls.parent[row])
    beside = trace.calls.children(parent) if parent >= 0 else np.flatnonzero(trace.calls.parent == -1).astype(np.int32)
    beside = beside[(events.kind[beside] == Kind.OPERATOR) & (events.lane[beside] == events.lane[row])]
    after = beside[events.ts[beside] >= events.end[row]]
    return int(after[np.argmin(events.ts[after])]) if len(after) else -1
