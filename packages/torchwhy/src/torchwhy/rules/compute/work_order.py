"""Steps that commute, in the order that takes more work."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.needless import needless
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.flops import output_of
from torchwhy.trace.derived.forward_pass import ForwardPass, forward_pass, product_shape
from torchwhy.trace.derived.shapes import Shape, elements, values
from torchwhy.trace.meaning.arithmetic import AFTER_CONVOLUTION, CONVOLUTION, LINEAR, PRODUCT, TABLE_LOOKUP, UPSAMPLING
from torchwhy.trace.meaning.operators import READS_ROWS, STRIDED_SLICE
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["gathered_before_product", "product_order", "skipped_outputs", "upsampled_before_pointwise"]

AHEAD: Final = 12
"""How many operators after a convolution are examined for a reader of another part of its result."""


@rule(
    "D60",
    "upsampled-before-pointwise",
    source="a 1 x 1 convolution right after `aten::upsample_*`, by shapes",
    frees="device",
)
def upsampled_before_pointwise(trace: Trace, *, share: float = 0.05, times: float = 2.0) -> Iterator[Finding]:
    """Features are upsampled before a 1 x 1 convolution that makes fewer channels of them.

    Sees: `aten::upsample_*` (`F.interpolate`, `nn.Upsample`) and right after it a convolution with a kernel of one
    element that reads the result, which has twice as many points as the features or more, and at most half as many
    channels come out. Both take 5% of the window or more, with their backward pass.

    Costs: the convolution computes every new point, and every channel is interpolated. Both are linear, one over
    channels and one over places, and their order doesn't matter: the result is the same except for rounding. At stake
    are the convolution at the new points, and the upsampling of the channels that it drops.

    Fix: the convolution first, then `F.interpolate` of what it made.

    Known problems: a convolution with padding makes a border of its bias, which would be interpolated.
    """
    program = trace.derived(forward_pass)
    parts: dict[int, float] = {}
    for i in np.flatnonzero(trace.events.are(UPSAMPLING, program.rows)).tolist():
        if i + 1 >= len(program.rows) or not trace.events.are(CONVOLUTION, program.rows[i + 1 : i + 2])[0]:
            continue
        small, (large, weight) = _first_two(program.shapes[i])[0], _first_two(program.shapes[i + 1])
        fits = len(small) == len(large) == len(weight) > 2 and elements(small) and small[:2] == large[:2]
        if not fits or prod(weight[2:]) != 1 or weight[1] != small[1] or 2 * weight[0] > small[1]:
            continue
        points = elements(large) / elements(small)
        if points >= times:
            parts |= {int(program.rows[i]): 1 - weight[0] / small[1], int(program.rows[i + 1]): 1 - 1 / points}
    yield from needless(
        trace,
        parts,
        share,
        "Features are upsampled before a 1 x 1 convolution",
        confidence="high",
        cause="The convolution mixes channels and the upsampling mixes places: either order gives the same, and this "
        "one interpolates more channels and convolves more points.",
        fix="Apply the 1 x 1 convolution first, and F.interpolate to its result.",
    )


@rule("D61", "skipped-outputs", source="slices with a step right after a convolution, by shapes", frees="device")
def skipped_outputs(trace: Trace, *, share: float = 0.05) -> Iterator[Finding]:
    """A convolution computes outputs that a slice with a step skips.

    Sees: a convolution and right after it, or after a normalisation or activation of its result, slices with a step
    of 2 or more (`[:, :, ::2, ::2]`) over its places. Another slice of the same result among the next twelve operators,
    as in patch merging, needs the rest of it. Both take 5% of the window or more, with the backward pass.

    Costs: every output is computed, and one of as many as the steps' product is read. At stake is the rest.

    Fix: `stride=` of the convolution: the outputs that it makes are those the slice would take.

    Known problems: a result that is read elsewhere, too, is needed whole: tensors are known by their shapes.
    """
    program = trace.derived(forward_pass)
    parts: dict[int, float] = {}
    for i in np.flatnonzero(trace.events.are(CONVOLUTION, program.rows)).tolist():
        row = int(program.rows[i])
        made = output_of(trace.name(row), program.shapes[i], values(trace, row))
        behind = i + 1
        while behind < len(program.rows) and trace.events.are(AFTER_CONVOLUTION, program.rows[behind : behind + 1])[0]:
            behind += 1
        taken = _taken_part(trace, program, behind, made) if made else 1.0
        if taken < 1:
            parts |= {int(between): 1 - taken for between in program.rows[i:behind]}
    yield from needless(
        trace,
        parts,
        share,
        "A convolution computes outputs that a slice with a step skips",
        confidence="high",
        cause=f"Of the result one element in {round(1 / (1 - max(parts.values(), default=0.0)))} is read.",
        fix="Give the convolution the slice's step as stride=: it then computes those outputs alone.",
    )


def _first_two(taken: list[Shape]) -> tuple[Shape, Shape]:
    """The shapes of an operator's first two tensors, empty where there are fewer."""
    first, second, *_ = (*taken, (), ())
    return first, second


def _taken_part(trace: Trace, program: ForwardPass, behind: int, made: Shape) -> float:
    """The part of a convolution's result that slices with a step take; 1 where something else reads it, too."""
    step, shape = 1, made
    end = behind
    while end < len(program.rows) and trace.events.are(STRIDED_SLICE, program.rows[end : end + 1])[0]:
        given = values(trace, int(program.rows[end]))
        numbers = [int(text) if text.lstrip("-").isdigit() else 0 for text in given[1:]]
        if len(numbers) < 4 or not program.shapes[end] or program.shapes[end][0] != shape:
            break
        axis = numbers[0] % len(shape)
        if numbers[3] < 2 or axis < 2:
            break
        step *= numbers[3]
        length = len(range(*slice(numbers[1], min(numbers[2], shape[axis]), numbers[3]).indices(shape[axis])))
        shape = (*shape[:axis], length, *shape[axis + 1 :])
        end += 1
    others = [taken[0] for taken in program.shapes[end : behind + AHEAD] if taken]
    return 1.0 if made in others else 1 / step


@rule("D62", "gathered-before-product", source="a linear layer right after `x[index]`, by shapes", frees="device")
def gathered_before_product(trace: Trace, *, share: float = 0.05, times: float = 2.0) -> Iterator[Finding]:
    """Rows are gathered, many of them several times, before a linear layer is applied to each.

    Sees: `x[index]`, `index_select` or an embedding that reads twice as many rows as the tensor has or more, and right
    after it `aten::linear` of these rows, with at most as many outputs as inputs. Both take 5% of the window or more,
    with their backward pass.

    Costs: a row that is gathered ten times is multiplied ten times, with the same result. At stake are the products
    beyond one for each row, and the columns that are gathered without need.

    Fix: multiply first, then gather: `linear(x)[index]` instead of `linear(x[index])`.

    Known problems: rows that the index leaves out are then multiplied, too.
    """
    program = trace.derived(forward_pass)
    parts: dict[int, float] = {}
    for i in np.flatnonzero(trace.events.are(READS_ROWS | TABLE_LOOKUP, program.rows)).tolist():
        if i + 1 >= len(program.rows) or not trace.events.are(LINEAR, program.rows[i + 1 : i + 2])[0]:
            continue
        table, (read, weight) = _first_two(program.shapes[i])[0], _first_two(program.shapes[i + 1])
        if len(table) != 2 or len(weight) != 2 or len(read) < 2 or read[-1] != table[1] or weight[0] > weight[1]:
            continue
        often = elements(read[:-1]) / max(table[0], 1)
        if often >= times:
            parts |= {int(program.rows[i]): 1 - weight[0] / weight[1], int(program.rows[i + 1]): 1 - 1 / often}
    yield from needless(
        trace,
        parts,
        share,
        "Rows are gathered before a linear layer is applied to each",
        confidence="high",
        cause="More rows are gathered than the tensor has: a row that is gathered several times is multiplied each "
        "time, with the same result.",
        fix="Multiply first, then gather: linear(x)[index] instead of linear(x[index]).",
    )


@rule("D63", "product-order", source="operations by shapes: (A B) C against A (B C)", frees="device")
def product_order(trace: Trace, *, share: float = 0.05, times: float = 2.0) -> Iterator[Finding]:
    """A chain of matrix products is computed in the order that takes more operations.

    Sees: two matrix products one right after the other, the second of which reads the first's result as its left
    factor, by shapes, where A (B C) takes at most half of the operations of (A B) C. Both take 5% of the window or
    more, with their backward pass.

    Costs: `A @ B @ x` is computed from the left: a product of two large matrices, where two products with the thin `x`
    do. At stake are the operations that the other order saves.

    Fix: brackets: `A @ (B @ x)`; `torch.linalg.multi_dot` finds the best order of a longer chain.

    Known problems: tensors are known by their shapes. A product that is made once and used for many thin ones may be
    worth it, if it is kept.
    """
    program = trace.derived(forward_pass)
    parts: dict[int, float] = {}
    products = trace.events.are(PRODUCT, program.rows) & ~trace.events.are(LINEAR, program.rows)
    same = program.step[:-1] == program.step[1:]
    for i in np.flatnonzero(products[:-1] & products[1:] & same).tolist():
        made = product_shape(trace, int(program.rows[i]), program.shapes[i])
        first, second = program.shapes[i][-2:], program.shapes[i + 1]
        if made is None or len(made) < 2 or len(second) != 2 or second[0] != made or min(map(len, first)) < 2:
            continue
        rows, inner, columns = first[0][-2], first[0][-1], made[-1]
        last = second[1][-1] if len(second[1]) > 1 else 1
        fits = first[1][-2:] == (inner, columns) and second[1][-2 if len(second[1]) > 1 else -1] == columns
        now, other = rows * columns * (inner + last), inner * last * (columns + rows)
        if fits and now >= times * other:
            parts |= {int(row): 1 - other / now for row in program.rows[i : i + 2]}
    yield from needless(
        trace,
        parts,
        share,
        "A chain of matrix products is computed in the longer order",
        cause="(A B) C multiplies two large matrices; A (B C) gives the same with at most "
        f"{percent(1 - min(parts.values(), default=0.0))} of the operations.",
        fix="Set brackets: A @ (B @ x) instead of A @ B @ x; torch.linalg.multi_dot orders longer chains.",
    )
