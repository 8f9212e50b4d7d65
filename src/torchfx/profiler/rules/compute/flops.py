"""What matrix products and attention take in arithmetic and memory, by the shapes of their inputs."""

from __future__ import annotations

from math import prod

from torchfx.profiler.trace.derived.shapes import Shape

__all__ = ["flops_of"]


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
