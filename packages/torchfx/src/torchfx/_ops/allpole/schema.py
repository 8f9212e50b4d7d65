"""Schemas and checks of the all-pole filter's operators.

    y[t] = x[t] - a[t, 1] y[t-1] - ... - a[t, n] y[t-n]

Coefficients are float32 or float64 (..., 1, n), constant, or (..., time, n), a row for each sample; their leading
dimensions broadcast with the signal's. States are past outputs, float64 (..., n), the latest first.
"""

from __future__ import annotations

import torch
from torch import Tensor

from torchfx._ops.checks import check_signal, check_state, gradient_shapes, leading_dimensions
from torchfx._ops.operator import Operand, Operator, Shapes
from torchfx.errors import ArgumentError, ArgumentTypeError

__all__ = ["OPERATORS", "forward_shapes"]

SIGNAL, COEFFICIENTS, STATE, RESULT = Operand(1), Operand(2), Operand(1, exact=True), Operand(1, exact=True)


def forward_shapes(x: Tensor, a: Tensor, past: Tensor | None) -> Shapes:
    """Return shapes and dtypes of output and past outputs after."""
    check_signal(x)
    time = x.shape[-1]
    if a.dtype is not torch.float64 and a.dtype is not torch.float32:
        raise ArgumentTypeError(f"a must be float32 or float64, got {a.dtype}")
    if a.dim() < 2 or a.shape[-1] < 1 or a.shape[-2] not in (1, time):
        raise ArgumentError(
            f"a must have the shape (..., 1 or time, order >= 1) for a signal of {time} samples, got {tuple(a.shape)}"
        )
    if a.device != x.device:
        raise ArgumentError(f"a must be on the signal's device {x.device}, got {a.device}")
    leading = leading_dimensions("a", a, 2, x)
    shape = (*leading, a.shape[-1])
    if past is not None:
        check_state(past, shape, x, "past")
    return ((*leading, time), x.dtype), (shape, torch.float64)


def backward_shapes(
    grad_y: Tensor,
    grad_after: Tensor | None,
    y: Tensor,
    x: Tensor,
    a: Tensor,
    past: Tensor | None,
    need_x: bool,
    need_a: bool,
    need_past: bool,
) -> Shapes:
    """Return the shapes of the gradients; a gradient that is not needed is empty."""
    forward, needed = forward_shapes(x, a, past), (need_x, need_a, need_past)
    return gradient_shapes(forward, x, a, needed, grad_after, grad_y=grad_y, y=y)


OPERATORS = (
    Operator(
        "allpole_forward(Tensor x, Tensor a, Tensor? past=None) -> (Tensor y, Tensor after)",
        {"x": SIGNAL, "a": COEFFICIENTS, "past": STATE},
        (RESULT, STATE),
        forward_shapes,
    ),
    Operator(
        "allpole_backward(Tensor grad_y, Tensor? grad_after, Tensor y, Tensor x, Tensor a, Tensor? past,"
        " bool need_x, bool need_a, bool need_past) -> (Tensor grad_x, Tensor grad_a, Tensor grad_past)",
        {"grad_y": RESULT, "grad_after": STATE, "y": RESULT, "x": SIGNAL, "a": COEFFICIENTS, "past": STATE},
        ("x", "a", STATE),
        backward_shapes,
    ),
)
