"""Schema and checks of sliding medians: y[t] is the median of x[t] ... x[t + window - 1], NaN where one of them is."""

from __future__ import annotations

from torch import Tensor

from torchfx._ops.checks import check_signal
from torchfx._ops.operator import Operand, Operator, Shapes
from torchfx.errors import ArgumentError

__all__ = ["OPERATORS"]


def shapes(x: Tensor, window: int) -> Shapes:
    """Return shape and dtype of the medians."""
    check_signal(x)
    if not 1 <= window <= x.shape[-1] + 1 or window % 2 == 0:
        raise ArgumentError(
            f"window must be odd and lie in [1, {x.shape[-1] + 1}] for {x.shape[-1]} samples, got {window}"
        )
    return (((*x.shape[:-1], x.shape[-1] - window + 1), x.dtype),)


OPERATORS = (
    Operator("sliding_median(Tensor x, int window) -> Tensor", {"x": Operand(1)}, (Operand(1, exact=True),), shapes),
)
