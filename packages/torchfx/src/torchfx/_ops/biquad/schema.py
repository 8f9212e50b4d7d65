"""Schema and checks of the biquad: numerator and denominator are float64 (..., 3), states float64 (..., 2)."""

from __future__ import annotations

import torch
from torch import Tensor

from torchfx._ops.checks import broadcast_shapes, check_coefficients, check_signal, check_state
from torchfx._ops.operator import Operand, Operator, Shapes

__all__ = ["OPERATORS"]


def shapes(x: Tensor, b: Tensor, a: Tensor, state: Tensor | None, threshold: int | None) -> Shapes:
    """Return shapes and dtypes of output and state after."""
    check_signal(x)
    check_coefficients("b", b, "(..., 3)", (3,), x)
    check_coefficients("a", a, "(..., 3)", (3,), x)
    leading = broadcast_shapes(x=x.shape[:-1], b=b.shape[:-1], a=a.shape[:-1])
    if state is not None:
        check_state(state, (*leading, 2), x)
    return ((*leading, x.shape[-1]), x.dtype), ((*leading, 2), torch.float64)


COEFFICIENTS, STATE = Operand(1), Operand(1, exact=True)

OPERATORS = (
    Operator(
        "biquad_forward(Tensor x, Tensor b, Tensor a, Tensor? state=None, int? threshold=None)"
        " -> (Tensor y, Tensor after)",
        {"x": Operand(1), "b": COEFFICIENTS, "a": COEFFICIENTS, "state": STATE},
        (Operand(1, exact=True), STATE),
        shapes,
    ),
)
