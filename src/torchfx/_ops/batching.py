"""What the operators' rules under `torch.func.vmap` share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

__all__ = ["one_by_one", "with_batch"]


def with_batch(tensor: Tensor, dim: int | None, size: int, at: int = 0) -> Tensor:
    """Return the tensor with its batch dimension at `at`, repeated (without a copy) where it has none."""
    if dim is not None:
        return tensor.movedim(dim, at)
    shape = list(tensor.shape)
    return tensor.unsqueeze(at).expand(*shape[:at], size, *shape[at:])


def one_by_one(
    operator: Callable[..., Sequence[Tensor]], size: int, in_dims: Sequence[int | None], args: Sequence[Any]
) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
    """Call an operator for each item of the batch and stack the results: for items with coefficients of their own."""
    results = []
    for i in range(size):
        item = [arg if dim is None else arg.select(dim, i) for arg, dim in zip(args, in_dims, strict=True)]
        results.append(operator(*item))
    stacked = tuple(torch.stack(parts) for parts in zip(*results, strict=True))
    return stacked, (0,) * len(stacked)
