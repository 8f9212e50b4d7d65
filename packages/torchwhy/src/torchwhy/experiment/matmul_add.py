"""A matrix product and a sum: what a linear layer does, small enough to understand every event of its trace."""

from __future__ import annotations

import torch

from torchwhy.experiment.case import Case
from torchwhy.experiment.workload import Workload

__all__ = ["MATMUL_ADD"]


def matmul_add(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return x @ w + b; all (size, size) or (batch, size, size)."""
    return torch.add(torch.matmul(x, w), b)


def make_inputs(case: Case) -> tuple[torch.Tensor, ...]:
    """Return x, w and b, normally distributed, the same for every run."""
    torch.manual_seed(0)
    return tuple(torch.randn(case.shape, device=case.device, dtype=case.torch_dtype) for _ in range(3))


def flops(case: Case) -> float:
    """Return 2 n^3 + n^2 for each matrix of the batch.

    >>> flops(Case(10)), flops(Case(10, batch=8))
    (2100.0, 16800.0)
    """
    return float((case.batch or 1) * (2 * case.size**3 + case.size**2))


MATMUL_ADD = Workload(
    name="matmul-add",
    summary="x @ w + b on square matrices: from overhead-bound to compute-bound by size alone",
    make_inputs=make_inputs,
    function=matmul_add,
    flops=flops,
    tensors=5,  # x, w, b, the product, the sum
)
