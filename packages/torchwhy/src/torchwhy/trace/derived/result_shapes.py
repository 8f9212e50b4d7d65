"""The shapes of what operators make, by their inputs, their values, and the gradients of their results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from torchwhy.trace.derived.autograd import autograd
from torchwhy.trace.derived.convolutions import convolution_output
from torchwhy.trace.derived.forward_pass import forward_pass, product_shape
from torchwhy.trace.derived.shapes import Shape, elements, shapes, values
from torchwhy.trace.meaning.arithmetic import (
    AFTER_CONVOLUTION,
    CONVOLVING,
    ELEMENTWISE,
    ROWWISE,
    TABLE_LOOKUP,
    UPSAMPLING,
)
from torchwhy.trace.meaning.operators import EXPAND, READS_ROWS, RESHAPE, SAME_SHAPE
from torchwhy.trace.model.events import parse_list

if TYPE_CHECKING:
    from torchwhy.trace.model.trace import Trace

__all__ = ["result_shape"]


def result_shape(trace: Trace, row: int) -> Shape:
    """The shape of an operator's result; () where the trace doesn't show it.

    Args:
        trace: where the row is from.
        row: an operator as the program calls it.
    """
    taken, given = shapes(trace, row), values(trace, row)
    if not taken:
        return ()
    if found := product_shape(trace, row, taken):
        return found
    (is_convolution, rowwise, elementwise, looks_up, resizes, expands, reshapes) = (
        bool(trace.events.are(meaning, [row])[0])
        for meaning in (
            CONVOLVING,
            ROWWISE | AFTER_CONVOLUTION | SAME_SHAPE,
            ELEMENTWISE,
            TABLE_LOOKUP,
            UPSAMPLING,
            EXPAND,
            RESHAPE,
        )
    )
    if is_convolution:
        return convolution_output(trace, row)
    if elementwise:
        try:
            return tuple(np.broadcast_shapes(*taken))
        except ValueError:
            return ()
    if rowwise:
        return taken[0]
    if looks_up and len(taken) == 2:
        return (*taken[1], taken[0][-1])
    size = _numbers(given[1]) if len(given) > 1 else []
    if resizes and len(size) == len(taken[0]) - 2:
        return (*taken[0][:2], *size)
    if expands and len(size) >= len(taken[0]):
        behind = (*(1,) * (len(size) - len(taken[0])), *taken[0])
        return tuple(old if new < 0 else new for old, new in zip(behind, size, strict=True))
    if reshapes and size.count(-1) < 2:
        rest = elements(tuple(n for n in size if n >= 0))
        return tuple(elements(taken[0]) // rest if n < 0 and rest else n for n in size)
    return _of_gradient(trace, row) or _rows_chosen(trace, row, taken)


def _rows_chosen(trace: Trace, row: int, taken: list[Shape]) -> Shape:
    """What indexing chooses, by the next operator, where that reads rows as wide."""
    program = trace.derived(forward_pass)
    if not trace.events.are(READS_ROWS, [row])[0]:
        return ()
    following = [program.shapes[i + 1] for i in np.flatnonzero(program.rows[:-1] == row).tolist()]
    read = following[0][0] if following and following[0] else ()
    return read if len(read) > 1 and read[1:] == taken[0][1:] else ()


def _numbers(text: str) -> list[int]:
    return [item for item in parse_list(text) if isinstance(item, int)] if text.startswith("[") else []


def _of_gradient(trace: Trace, row: int) -> Shape:
    """The shape of the gradient that the operator's node of the backward pass is given."""
    pairs = trace.derived(autograd)
    for node in pairs.backward_of(row)[:1]:
        for inner in (node, *trace.calls.children(node).tolist()):
            if taken := shapes(trace, inner):
                return taken[0]
    return ()
