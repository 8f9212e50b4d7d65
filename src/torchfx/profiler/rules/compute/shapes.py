"""Shapes and types of operators' inputs, as `record_shapes` writes them."""

from __future__ import annotations

from math import prod
from typing import Final

from torchfx.profiler.trace.events import parse_list
from torchfx.profiler.trace.trace import Trace

__all__ = ["DTYPES", "WIDTH", "dtypes", "elements", "flops_of", "shapes"]

DTYPES: Final = {
    "float": "float32",
    "double": "float64",
    "c10::Half": "float16",
    "c10::BFloat16": "bfloat16",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "c10::Float8_e4m3fn": "float8",
    "c10::Float8_e5m2": "float8",
    "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
    "long": "int64",
    "long int": "int64",
    "int": "int32",
    "bool": "bool",
    "signed char": "int8",
    "unsigned char": "uint8",
}
"""What the trace calls types, and PyTorch's names."""

WIDTH: Final = {
    "float32": 4, "float64": 8, "float16": 2, "bfloat16": 2, "float8": 1, "complex64": 8, "complex128": 16,
    "int64": 8, "int32": 4, "bool": 1, "int8": 1, "uint8": 1,
}  # fmt: skip
"""Bytes per element."""

Shape = tuple[int, ...]


def shapes(trace: Trace, row: int) -> list[Shape]:
    """The shapes of an operator's tensors; what isn't a tensor is left out only where it has no dimensions recorded."""
    return [shape for shape in _all(trace, row) if shape]


def _all(trace: Trace, row: int) -> list[Shape]:
    found: list[Shape] = []
    for item in parse_list(trace.events.text("Input Dims", row)):
        plain = isinstance(item, list) and all(isinstance(size, int) for size in item)
        found.append(tuple(item) if plain else ())  # type: ignore[arg-type]
    return found


def dtypes(trace: Trace, row: int) -> list[str]:
    """The types of an operator's inputs by PyTorch's names; "" for what is no tensor of a known type."""
    return [DTYPES.get(str(item), "") for item in parse_list(trace.events.text("Input type", row))]


def elements(shape: Shape) -> int:
    """How many elements a tensor of a shape has."""
    return prod(shape)


def flops_of(name: str, sizes: list[Shape]) -> tuple[float, float] | None:
    """Return arithmetic operations and elements moved of a matrix operator, or None where the shapes don't tell.

    Args:
        name: such as "aten::mm".
        sizes: the shapes of its tensors in order.

    >>> flops_of("aten::mm", [(4096, 1024), (1024, 512)])[0] == 2 * 4096 * 1024 * 512
    True
    """
    plain = name.removeprefix("aten::").removesuffix("_out").rstrip("_")
    pair = sizes[1:3] if plain in ("addmm", "baddbmm") else sizes[:2]
    if plain in ("mm", "addmm", "_int_mm", "_scaled_mm") and len(pair) == 2 and all(len(s) == 2 for s in pair):
        (m, k), (again, n) = pair
        return (2.0 * m * n * k, float(m * k + k * n + m * n)) if k == again else None
    if plain in ("bmm", "baddbmm") and len(pair) == 2 and all(len(s) == 3 for s in pair):
        (b, m, k), (_, again, n) = pair
        return (2.0 * b * m * n * k, float(b * (m * k + k * n + m * n))) if k == again else None
    return _attention_flops(plain, sizes)


def _attention_flops(plain: str, sizes: list[Shape]) -> tuple[float, float] | None:
    """Both products of attention, without a mask's savings; the backward pass has two and a half times as much."""
    if not plain.startswith(
        ("_scaled_dot_product_", "_flash_attention_", "_efficient_attention_", "_cudnn_attention_")
    ):
        return None
    backward = "backward" in plain
    tensors = sizes[1:4] if backward else sizes[:3]  # the gradient of the output comes first
    if len(tensors) < 3 or any(len(size) != 4 for size in tensors):
        return None
    q, key, value = tensors
    length = 2 if plain.startswith("_scaled") else 1  # inner operators take (batch, length, heads, features)
    work = 2.0 * prod(q[:3]) * key[length] * (q[3] + value[3]) * (2.5 if backward else 1)
    return work, float(sum(map(prod, tensors)) + prod(q[:3]) * value[3])
