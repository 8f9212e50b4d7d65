"""Shapes and types of operators' inputs, as `record_shapes` writes them."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

import numpy as np

from torchwhy.trace.model.events import parse_list

if TYPE_CHECKING:
    from torchwhy.trace.file.columns import Int32
    from torchwhy.trace.model.trace import Trace

__all__ = ["DTYPES", "WIDTH", "Shape", "dtypes", "elements", "growth", "shapes", "tensor_lists", "tensors", "values"]

DTYPES: Final = {
    "float": "float32",
    "double": "float64",
    "c10::Half": "float16",
    "c10::BFloat16": "bfloat16",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "c10::Float8_e4m3fn": "float8",
    "c10::Float8_e5m2": "float8",
    "c10::Float8_e4m3fnuz": "float8",
    "c10::Float8_e5m2fnuz": "float8",
    "c10::Float4_e2m1fn_x2": "float4",
    "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
    "long": "int64",
    "long int": "int64",
    "int": "int32",
    "bool": "bool",
    "short": "int16",
    "short int": "int16",
    "signed char": "int8",
    "unsigned char": "uint8",
}
"""Names of types in traces, and PyTorch's names."""

WIDTH: Final = {
    "float32": 4, "float64": 8, "float16": 2, "bfloat16": 2, "float8": 1, "float4": 1, "complex64": 8, "complex128": 16,
    "int64": 8, "int32": 4, "int16": 2, "bool": 1, "int8": 1, "uint8": 1,
}  # fmt: skip
"""Bytes per element; of float4, of which a byte holds two, per pair."""

_DIFFERENT: Final = 3
_GROWN: Final = 1.1

Shape = tuple[int, ...]


def shapes(trace: Trace, row: int) -> list[Shape]:
    """The shapes of an operator's tensors; what isn't a tensor is left out only where it has no dimensions recorded."""
    return [shape for shape in _all(trace, row) if shape]


def tensor_lists(trace: Trace, row: int) -> list[list[Shape]]:
    """The shapes in each list of tensors that an operator takes."""
    return [
        [tuple(inner) for inner in item]
        for item in parse_list(trace.events.text("Input Dims", row))
        if isinstance(item, list) and item and all(isinstance(inner, list) for inner in item)
    ]


def _all(trace: Trace, row: int) -> list[Shape]:
    found: list[Shape] = []
    for item in parse_list(trace.events.text("Input Dims", row)):
        plain = isinstance(item, list) and all(isinstance(size, int) for size in item)
        found.append(tuple(item) if plain else ())  # type: ignore[arg-type]
    return found


def dtypes(trace: Trace, row: int) -> list[str]:
    """The types of an operator's inputs by PyTorch's names; "" for what is no tensor of a known type."""
    return [DTYPES.get(str(item), "") for item in parse_list(trace.events.text("Input type", row))]


def tensors(trace: Trace, row: int) -> list[tuple[Shape, int]]:
    """Shape and bytes per element of an operator's tensors of a known type; those without dimensions are left out."""
    pairs = zip(_all(trace, row), dtypes(trace, row), strict=False)
    return [(shape, WIDTH[dtype]) for shape, dtype in pairs if shape and dtype]


def values(trace: Trace, row: int) -> list[str]:
    """The values of an operator's inputs that are no tensors, by place; "" for tensors and what wasn't recorded."""
    return [str(item) for item in parse_list(trace.events.text("Concrete Inputs", row))]


def elements(shape: Shape) -> int:
    """How many elements a tensor of a shape has."""
    return prod(shape)


def growth(trace: Trace, rows: Int32) -> tuple[int, int] | None:
    """How many elements the largest input has in the first and in the last of some calls; None if it doesn't grow.

    It grows if no call's is smaller than the one before, at least three differ, and the last is a tenth larger.

    Args:
        trace: where the rows are from.
        rows: calls of one operator by start.
    """
    texts = trace.events.text_ids("Input Dims", rows)
    distinct, first, which = np.unique(texts, return_index=True, return_inverse=True)
    if len(distinct) < _DIFFERENT:
        return None
    sizes = np.array([_largest(trace, int(row)) for row in rows[first]])[which.reshape(-1)]
    grows = bool((np.diff(sizes) >= 0).all()) and sizes[-1] >= _GROWN * sizes[0] > 0
    return (int(sizes[0]), int(sizes[-1])) if grows else None


def _largest(trace: Trace, row: int) -> int:
    taken = [*shapes(trace, row), *(shape for one in tensor_lists(trace, row) for shape in one)]
    return max(map(elements, taken), default=0)
