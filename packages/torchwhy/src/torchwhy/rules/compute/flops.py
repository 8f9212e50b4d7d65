"""What operators take in arithmetic and memory, by the shapes of their inputs.

Products of matrices, also grouped and of experts; attention forward and backward; convolutions where their output is
known: strides and paddings aren't in the shapes.
"""

from __future__ import annotations

from math import prod
from typing import Final

from torchwhy.trace.derived.shapes import Shape
from torchwhy.trace.meaning.arithmetic import (
    CONVOLUTION_BACKWARD,
    CONVOLVING,
    FUSED_ATTENTION,
    FUSED_EXPERTS,
)
from torchwhy.trace.meaning.operators import short_operator

__all__ = ["flops_of"]

Needed = tuple[float, float]
"""Arithmetic operations, and elements read and written."""

_PLAIN: Final = ("mm", "addmm", "_addmm_activation", "_int_mm", "_scaled_mm")
_BATCHED: Final = ("bmm", "baddbmm")
_GROUPED: Final = ("_grouped_mm", "_scaled_grouped_mm")
_ADDS_FIRST: Final = ("addmm", "_addmm_activation", "baddbmm", "addmv")


def flops_of(name: str, sizes: list[Shape], output: Shape = (), gradients: int = 2) -> Needed | None:
    """Return arithmetic operations and elements moved of an operator, or None where the shapes don't tell.

    Args:
        name: such as "aten::mm".
        sizes: the shapes of its tensors in order.
        output: the shape of the result, where it is known; convolutions need it.
        gradients: how many gradients a convolution's backward pass computes, of its input and of its weight.

    >>> flops_of("aten::mm", [(4096, 1024), (1024, 512)])[0] == 2 * 4096 * 1024 * 512
    True
    >>> flops_of("aten::_grouped_mm", [(4096, 1024), (8, 1024, 512), (8,)])[0] == 2 * 4096 * 1024 * 512
    True
    >>> flops_of("aten::conv2d", [(8, 3, 32, 32), (16, 3, 3, 3)], (8, 16, 15, 15))[0] == 2 * 8 * 16 * 15 * 15 * 27
    True
    """
    plain = short_operator(name).removesuffix("_out").rstrip("_")
    first, second = _pair(sizes, 1 if plain in _ADDS_FIRST else 0)
    if plain in _PLAIN and len(first) == len(second) == 2:
        return _product(1, first[0], first[1], second) if first[1] == second[0] else None
    if plain in _BATCHED and len(first) == len(second) == 3:
        return _product(first[0], first[1], first[2], second) if first[2] == second[1] else None
    if plain in ("mv", "addmv") and len(first) == 2 and second == first[1:]:
        return 2.0 * prod(first), float(prod(first) + sum(first))
    if plain in _GROUPED:
        return _grouped(first, second, sizes)
    if FUSED_EXPERTS.names(name):
        return _experts(sizes)
    if FUSED_ATTENTION.names(name):
        return _attention(plain, sizes)
    if CONVOLUTION_BACKWARD.names(name) and len(sizes) > 2:
        return _convolution(sizes[1], sizes[2], sizes[0], gradients)
    if CONVOLVING.names(name) and len(sizes) > 1 and output:
        return _convolution(sizes[0], sizes[1], output, 1)
    return None


def _pair(sizes: list[Shape], first: int) -> tuple[Shape, Shape]:
    return (sizes[first], sizes[first + 1]) if len(sizes) > first + 1 else ((), ())


def _product(batch: int, rows: int, inner: int, second: Shape) -> Needed:
    columns = second[-1]
    return 2.0 * batch * rows * columns * inner, float(batch * (rows * inner + inner * columns + rows * columns))


def _grouped(first: Shape, second: Shape, sizes: list[Shape]) -> Needed | None:
    """Products of rows that belong to several matrices; `offs`, one entry per matrix, says which to which."""
    if len(first) == len(second) == 3:
        return _product(first[0], first[1], first[2], second) if first[2] == second[1] else None
    groups = second[0] if len(second) == 3 else first[0] if len(first) == 3 else sizes[-1][0]
    if len(first) == 2 and len(second) == 3 and first[1] == second[1]:
        rows, inner, columns = first[0], first[1], second[2]
    elif len(first) == 3 and len(second) == 2 and first[2] == second[0]:
        rows, inner, columns = first[1], first[2], second[1]
    elif len(first) == len(second) == 2 and first[1] == second[0] and len(sizes[-1]) == 1:
        # The sum runs over the rows of each group: a gradient of the matrices.
        return 2.0 * first[0] * first[1] * second[1], float(prod(first) + prod(second) + groups * first[0] * second[1])
    else:
        return None
    return 2.0 * rows * inner * columns, float(prod(first) + prod(second) + rows * columns)


def _experts(sizes: list[Shape]) -> Needed | None:
    """Both products of a mixture of experts, as vLLM and SGLang give it: tokens, two weights, each token's choice."""
    if len(sizes) < 4 or [len(size) for size in sizes[:4]] != [2, 3, 3, 2]:
        return None
    tokens, up, down, chosen = sizes[:4]
    if tokens[1] != up[2] or up[0] != down[0]:
        return None
    rows = tokens[0] * chosen[1]
    work = 2.0 * rows * (prod(up[1:]) + prod(down[1:]))
    return work, float(2 * prod(tokens) + prod(up) + prod(down) + rows * (up[1] + down[2]))


def _attention(plain: str, sizes: list[Shape]) -> Needed | None:
    """Both products of attention, without a mask's savings; the backward pass has two and a half times as much."""
    backward = "backward" in plain
    tensors = sizes[1:4] if backward else sizes[:3]  # the gradient of the output comes first
    if len(tensors) < 3 or any(len(size) != 4 for size in tensors):
        return None
    q, key, value = tensors
    length = 2 if plain.startswith("_scaled") else 1  # inner operators take (batch, length, heads, features)
    work = 2.0 * prod(q[:3]) * key[length] * (q[3] + value[3]) * (2.5 if backward else 1)
    return work, float((2 if backward else 1) * (sum(map(prod, tensors)) + prod(q[:3]) * value[3]))


def _convolution(into: Shape, weight: Shape, output: Shape, times: int) -> Needed | None:
    """Each output element sums over its group's channels and the kernel; a transposed convolution is left out."""
    fits = len(into) == len(weight) == len(output) > 2 and into[0] == output[0] and weight[0] == output[1]
    if not fits or into[1] % weight[1] or prod(output[2:]) > 1.5 * prod(into[2:]):
        return None
    work = 2.0 * output[0] * prod(output[2:]) * prod(weight)
    return times * work, float(times * (prod(into) + prod(weight) + prod(output)))
