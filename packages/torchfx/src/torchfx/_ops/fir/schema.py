"""Schemas and checks of the finite impulse response's operators.

Taps are float64 (..., n); their leading dimensions broadcast with the signal's. States are float64 (..., n - 1),
SciPy's `lfilter` zi: what past input still adds to the coming outputs.
"""

from __future__ import annotations

import torch
from torch import Tensor

from torchfx._ops.checks import check_coefficients, check_signal, check_state, gradient_shapes, leading_dimensions
from torchfx._ops.operator import Operand, Operator, Shapes

__all__ = ["OPERATORS", "forward_shapes"]

FLOAT32, FLOAT64 = torch.float32, torch.float64
SIGNAL, TAPS, STATE, RESULT = Operand(1), Operand(1), Operand(1, exact=True), Operand(1, exact=True)


def forward_shapes(x: Tensor, taps: Tensor, state: Tensor | None) -> Shapes:
    """Return shapes and dtypes of output and state after."""
    if x.is_cpu and taps.is_cpu and state is None and taps.dim() == 1 <= x.dim():  # most calls, in a third of the time
        size = taps.shape[0]
        if size and taps.dtype is FLOAT64 and (x.dtype is FLOAT32 or x.dtype is FLOAT64):
            return (x.shape, x.dtype), ((*x.shape[:-1], size - 1), FLOAT64)
    check_signal(x)
    check_coefficients("taps", taps, "(..., n >= 1)", (None,), x)
    leading = leading_dimensions("taps", taps, 1, x)
    shape = (*leading, taps.shape[-1] - 1)
    if state is not None:
        check_state(state, shape, x)
    return ((*leading, x.shape[-1]), x.dtype), (shape, torch.float64)


def backward_shapes(
    grad_y: Tensor,
    grad_after: Tensor | None,
    x: Tensor,
    taps: Tensor,
    need_x: bool,
    need_taps: bool,
    need_state: bool,
) -> Shapes:
    """Return the shapes of the gradients; a gradient that is not needed is empty."""
    forward, needed = forward_shapes(x, taps, None), (need_x, need_taps, need_state)
    return gradient_shapes(forward, x, taps, needed, grad_after, grad_y=grad_y)


OPERATORS = (
    Operator(
        "fir_forward(Tensor x, Tensor taps, Tensor? state=None) -> (Tensor y, Tensor after)",
        {"x": SIGNAL, "taps": TAPS, "state": STATE},
        (RESULT, STATE),
        forward_shapes,
    ),
    Operator(
        "fir_backward(Tensor grad_y, Tensor? grad_after, Tensor x, Tensor taps, bool need_x, bool need_taps,"
        " bool need_state) -> (Tensor grad_x, Tensor grad_taps, Tensor grad_state)",
        {"grad_y": RESULT, "grad_after": STATE, "x": SIGNAL, "taps": TAPS},
        ("x", "taps", STATE),
        backward_shapes,
    ),
)
