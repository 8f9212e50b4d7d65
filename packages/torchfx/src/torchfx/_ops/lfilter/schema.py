"""Schemas and checks of transfer functions (b0 + b1/z + ...) / (1 + a1/z + ...).

Numerator and denominator are float64 (..., order + 1), order >= 1, and a0 is taken for 1; states are SciPy's `lfilter`
zi, float64 (..., order). `edge` and `extension` are those of the cascade that runs both ways (`_ops/zero_phase`).
"""

from __future__ import annotations

import torch
from torch import Tensor

from torchfx._ops.checks import broadcast_shapes, check_coefficients, check_signal, check_state
from torchfx._ops.operator import Operand, Operator, Shapes
from torchfx._ops.zero_phase.schema import check_extension

__all__ = ["OPERATORS"]


def forward_shapes(x: Tensor, b: Tensor, a: Tensor, state: Tensor | None) -> Shapes:
    """Return shapes and dtypes of output and state after."""
    if x.is_cpu and b.is_cpu and a.is_cpu and state is None and b.dim() == a.dim() == 1 <= x.dim():  # most calls
        same = b.shape == a.shape and b.dtype is a.dtype is torch.float64
        size = b.shape[0]
        if same and size > 1 and (x.dtype is torch.float32 or x.dtype is torch.float64):
            return (x.shape, x.dtype), ((*x.shape[:-1], size - 1), torch.float64)
    check_signal(x)
    size = max(2, b.shape[-1]) if b.dim() else 2
    check_coefficients("b", b, "(..., order + 1 >= 2)", (size,), x)
    check_coefficients("a", a, f"(..., {size})", (size,), x)
    leading: tuple[int, ...] = x.shape[:-1]
    if b.dim() > 1 or a.dim() > 1:
        leading = broadcast_shapes(x=leading, b=b.shape[:-1], a=a.shape[:-1])
    after = (*leading, size - 1)
    if state is not None:
        check_state(state, after, x)
    return ((*leading, x.shape[-1]), x.dtype), (after, torch.float64)


def zero_phase_shapes(x: Tensor, b: Tensor, a: Tensor, edge: int, extension: str) -> Shapes:
    """Return shape and dtype of the output."""
    check_extension(x, edge, extension)
    return forward_shapes(x, b, a, None)[:1]


COEFFICIENTS, STATE, RESULT = Operand(1), Operand(1, exact=True), Operand(1, exact=True)

OPERATORS = (
    Operator(
        "lfilter_forward(Tensor x, Tensor b, Tensor a, Tensor? state=None) -> (Tensor y, Tensor after)",
        {"x": Operand(1), "b": COEFFICIENTS, "a": COEFFICIENTS, "state": STATE},
        (RESULT, STATE),
        forward_shapes,
    ),
    Operator(
        "lfilter_zero_phase(Tensor x, Tensor b, Tensor a, int edge, str extension) -> Tensor",
        {"x": Operand(1), "b": COEFFICIENTS, "a": COEFFICIENTS},
        (RESULT,),
        zero_phase_shapes,
    ),
)
