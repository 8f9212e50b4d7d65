"""Schema and checks of the quantiser with error feedback.

    v[t] = x[t] - taps[0] e[t-1] - ... - taps[n-1] e[t-n]
    y[t] = v[t] + dither[t], rounded to a whole number, halves to the even one
    e[t] = y[t] - v[t]

So y = x + (1 - taps[0] z^-1 - ... - taps[n-1] z^-n) e: the taps shape the spectrum of the errors. Taps are float64
(..., n). Dither is like x; leading dimensions broadcast. Errors are float64 (..., n), the latest first.

Source: S. P. Lipshitz, J. Vanderkooy, R. A. Wannamaker, Minimally Audible Noise Shaping, J. Audio Eng. Soc. 39, 1991.
"""

from __future__ import annotations

import torch
from torch import Tensor

from torchfx._ops.checks import broadcast_shapes, check_coefficients, check_signal, check_state
from torchfx._ops.operator import Operand, Operator, Shapes
from torchfx.errors import ArgumentError

__all__ = ["OPERATORS"]

SIGNAL, TAPS, EXACT = Operand(1), Operand(1), Operand(1, exact=True)


def forward_shapes(x: Tensor, dither: Tensor, taps: Tensor, errors: Tensor | None) -> Shapes:
    """Return shapes and dtypes of output and errors after."""
    check_signal(x)
    if dither.shape[-1:] != x.shape[-1:] or dither.dtype is not x.dtype or dither.device != x.device:
        raise ArgumentError(
            f"dither must hold {x.shape[-1]} samples of {x.dtype} on {x.device}, "
            f"got {tuple(dither.shape)} of {dither.dtype} on {dither.device}"
        )
    check_coefficients("taps", taps, "(..., n >= 1)", (None,), x)
    leading = broadcast_shapes(x=x.shape[:-1], dither=dither.shape[:-1], taps=taps.shape[:-1])
    after = (*leading, taps.shape[-1])
    if errors is not None:
        check_state(errors, after, x, "errors")
    return ((*leading, x.shape[-1]), x.dtype), (after, torch.float64)


OPERATORS = (
    Operator(
        "error_feedback_forward(Tensor x, Tensor dither, Tensor taps, Tensor? errors=None) -> (Tensor y, Tensor after)",
        {"x": SIGNAL, "dither": SIGNAL, "taps": TAPS, "errors": EXACT},
        (EXACT, EXACT),
        forward_shapes,
    ),
)
