"""Operators as the program calls them, one after another, and the work that belongs to some of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from torchwhy.trace.derived.autograd import autograd
from torchwhy.trace.derived.host_activity import otherwise_engaged, outer_operators
from torchwhy.trace.derived.shapes import Shape, shapes, tensor_lists
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.file.columns import Flags, Int32
from torchwhy.trace.meaning.annotations import OPTIMIZER
from torchwhy.trace.meaning.arithmetic import BATCHED_PRODUCT, BIASED_PRODUCT, LINEAR, PRODUCT
from torchwhy.trace.meaning.operators import BACKWARD

if TYPE_CHECKING:
    from torchwhy.trace.model.intervals import Intervals
    from torchwhy.trace.model.trace import Trace

__all__ = [
    "ForwardPass",
    "backward_of",
    "differentiated",
    "forward_pass",
    "needless_work",
    "product_shape",
    "work_of",
]


@dataclass(frozen=True)
class ForwardPass:
    """Operators that the program's own thread calls, outside of the backward pass, optimizers and loaders.

    Attributes:
        rows: outermost operators by start, one entry each, as in all that follows.
        step: the index of the step, or -1 in a trace without steps.
        shapes: of the tensors that the operator takes, those without dimensions left out.
        lists: the shapes in lists of tensors, a list for each.
    """

    rows: Int32
    step: Int32
    shapes: list[list[Shape]]
    lists: list[list[list[Shape]]]


def forward_pass(trace: Trace) -> ForwardPass:
    """Find these operators; `trace.derived(forward_pass)` does it once."""
    events, window = trace.events, trace.derived(steady_window)
    rows = trace.derived(outer_operators)
    rows = rows[(events.lane[rows] == trace.main_lane) & trace.in_steps(rows) & ~events.are(BACKWARD, rows)]
    rows = rows[events.begin_in(rows, window.start, window.end)]
    left_out = trace.derived(otherwise_engaged) | events.times_of(events.of(OPTIMIZER))
    rows = rows[events.covered(rows, left_out) == 0]
    texts = events.text_ids("Input Dims", rows).tolist()
    read: dict[int, tuple[list[Shape], list[list[Shape]]]] = {}
    for text, row in zip(texts, rows.tolist(), strict=True):
        if text not in read:
            read[text] = shapes(trace, row), tensor_lists(trace, row)
    return ForwardPass(rows, trace.step_of(rows), [read[i][0] for i in texts], [read[i][1] for i in texts])


def product_shape(trace: Trace, row: int, taken: list[Shape]) -> Shape | None:
    """The shape of a matrix product's result; None for other operators, and where the shapes don't show it."""
    if len(taken) < 2 or not trace.events.are(PRODUCT, [row])[0]:
        return None
    if trace.events.are(LINEAR, [row])[0]:
        return (*taken[0][:-1], *taken[1][:-1])
    a, b = taken[1:3] if trace.events.are(BIASED_PRODUCT, [row])[0] and len(taken) > 2 else taken[:2]
    if trace.events.are(BATCHED_PRODUCT, [row])[0]:
        return (*a[:-1], b[-1])
    if len(a) < 2 or len(b) < 2:
        return (*a[:-1], *b[:-2], *b[-1:]) if len(b) > 1 else a[:-1]
    batch = np.broadcast_shapes(a[:-2], b[:-2]) if _fit(a[:-2], b[:-2]) else a[:-2]
    return (*batch, a[-2], b[-1])


def backward_of(trace: Trace, rows: Int32) -> Int32:
    """The nodes of the backward pass of some operators, and of those that these call."""
    pairs = trace.derived(autograd)
    found: Int32 = pairs.backward[trace.calls.within(pairs.forward, rows)]
    return found


def differentiated(trace: Trace, rows: Int32) -> Flags:
    """Whether the backward pass goes through some operators, or through those that they call."""
    made = np.zeros(len(trace.events), np.int64)
    made[trace.derived(autograd).forward] = 1
    found: Flags = trace.calls.sums(made)[rows] > 0
    return found


def work_of(trace: Trace, rows: Int32) -> Intervals:
    """When the work of some calls takes place: on the device what they launch; without a device their own time."""
    if not trace.has_gpu:
        return trace.when(rows)
    launched = np.flatnonzero(trace.links.launch >= 0)
    mine = launched[trace.calls.within(trace.links.launch[launched], rows)]
    return trace.when(trace.links.work[mine])


def needless_work(trace: Trace, parts: dict[int, float]) -> tuple[Intervals, float]:
    """When some calls and their backward pass work, and how many microseconds of that aren't needed.

    Args:
        parts: which part of each row's work isn't needed, from 0 to 1.
    """
    when, needless = work_of(trace, np.empty(0, np.int32)), 0.0
    for part in sorted(set(parts.values()), reverse=True):
        rows = np.array(sorted(row for row, mine in parts.items() if mine == part), np.int32)
        more = work_of(trace, np.concatenate((rows, backward_of(trace, rows)))) - when
        when, needless = when | more, needless + part * more.total / 1000
    return when, needless


def _fit(a: Shape, b: Shape) -> bool:
    return all(x == y or 1 in (x, y) for x, y in zip(a[::-1], b[::-1], strict=False))
