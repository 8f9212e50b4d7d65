"""Weights of low rank that are multiplied out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import (
    ForwardPass,
    backward_of,
    differentiated,
    forward_pass,
    product_shape,
    work_of,
)
from torchwhy.trace.derived.shapes import elements
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.meaning.arithmetic import ELEMENTWISE, LINEAR
from torchwhy.trace.meaning.operators import VIEW
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["low_rank_weight"]

BEFORE: Final = 6
"""The product that makes a weight is at most this number of operators before the layer that uses it."""


@rule(
    "D43",
    "low-rank-weight",
    source="operations by shapes: out x in x rank against rows x rank x (out + in)",
    frees="device",
)
def low_rank_weight(trace: Trace, *, share: float = 0.05, part_of_size: int = 8) -> Iterator[Finding]:
    """A weight of low rank is multiplied out for the layer that uses it.

    Sees: a matrix product with the shape of a weight, whose factors have a rank of at most an eighth of its smaller
    side, and among the next six operators `aten::linear` with that weight, only elementwise operators of its shape in
    between. The layer is trained through that weight, or has fewer rows than the product pays for. An input as large as
    the weight would make this ambiguous: the product may be the input. Products, those operators and their backward
    pass take 5% of the window or more.

    Costs: out x in x rank operations and the writing of whole weights, in training their gradients too, where two thin
    products with the input take rows x rank x (out + in). At stake are these, and the half of the layer's backward
    pass that computes the weight's gradient.

    Fix: multiply the input with one factor after the other: `F.linear(x, W) + scale * F.linear(F.linear(x, A), B)`.
    To serve, merge the adapter into the weight once, before the loop.

    Known problems: tensors are known by their shapes. DoRA, and others that divide by the norm of the whole weight,
    need it.
    """
    program, window = trace.derived(forward_pass), trace.derived(steady_window)
    made: set[int] = set()
    layers: set[int] = set()
    for i in np.flatnonzero(trace.events.are(LINEAR, program.rows)).tolist():
        chain = _makers(trace, program, i, part_of_size)
        trained = bool(chain) and bool(differentiated(trace, program.rows[chain[:1]])[0])
        if chain and (trained or _few_rows(program, i)):
            made.update(program.rows[chain].tolist())
            if trained:
                layers.add(int(program.rows[i]))
    if not made:
        return
    rows = np.array(sorted(made), np.int32)
    own = work_of(trace, np.concatenate((rows, backward_of(trace, rows))))
    gradients = work_of(trace, backward_of(trace, np.array(sorted(layers), np.int32)))
    when = own | gradients
    if window.share(own) < share:
        return
    yield Finding(
        title=f"A weight of low rank is multiplied out for each call of its layer: {percent(window.share(own))} of the "
        "time",
        confidence="high",
        time_us=(own.total + (gradients - own).total / 2) / 1000,
        stretches=when,
        window=window,
        evidence=evidence(trace, rows),
        cause="The product of two thin matrices is written out with the shape of the whole weight."
        + (" Backward then computes the gradient of the whole weight." if layers else ""),
        fix="Multiply the input with one factor after the other: F.linear(x, W) + scale * F.linear(F.linear(x, A), B). "
        "To serve, merge the factors into the weight once, before the loop.",
        linked=False,
    )


def _makers(trace: Trace, program: ForwardPass, i: int, part_of_size: int) -> list[int]:
    """The product that makes the weight of a layer, and what follows it until there; [] without one."""
    if len(program.shapes[i]) < 2 or len(program.shapes[i][1]) != 2:
        return []
    given, weight = program.shapes[i][:2]
    if elements(given) == elements(weight):  # the product may be the layer's input, as in any perceptron
        return []
    for k in range(i - 1, max(i - 1 - BEFORE, -1), -1):
        row, taken = int(program.rows[k]), program.shapes[k]
        if product_shape(trace, row, taken) == weight:
            return list(range(k, i)) if taken[0][-1] * part_of_size <= min(weight) else []
        known = trace.events.are(ELEMENTWISE, [row])[0] and weight in taken
        if not known and not trace.events.are(VIEW, [row])[0]:
            return []
    return []


def _few_rows(program: ForwardPass, i: int) -> bool:
    """Whether two thin products with a layer's input take fewer operations than the product that makes its weight."""
    given, weight = program.shapes[i][:2]
    return elements(given[:-1]) * sum(weight) < elements(weight)
