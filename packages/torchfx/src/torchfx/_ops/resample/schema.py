"""Schema and checks of the resampling operator.

With `up` phases of n taps each, output m is

    y[m] = sum over k of taps[p, k] x[q - k],    q up + p = m down + origin,    0 <= p < up

that is, the signal with up - 1 zeros after each sample, filtered, and of that every `down`-th sample from `origin` on.
Nothing is kept between calls: past input is part of x, and `origin` says where in it the first output lies.
"""

from __future__ import annotations

import math

from torch import Tensor

from torchfx._ops.checks import check_coefficients, check_signal
from torchfx._ops.operator import Operand, Operator, Shapes
from torchfx.errors import ArgumentError

__all__ = ["OPERATORS"]


def shapes(x: Tensor, taps: Tensor, down: int, origin: int, length: int) -> Shapes:
    """Return shape and dtype of the output."""
    check_signal(x)
    check_coefficients("taps", taps, "(up >= 1, n >= 1)", (None, None), x)
    if taps.dim() != 2:
        raise ArgumentError(f"taps must have the shape (up >= 1, n >= 1), got {tuple(taps.shape)}")
    if down < 1 or math.gcd(taps.shape[0], down) != 1:
        raise ArgumentError(f"down must be >= 1 and have no divisor in common with up = {taps.shape[0]}, got {down}")
    if length < 0:
        raise ArgumentError(f"length must be >= 0, got {length}")
    return (((*x.shape[:-1], length), x.dtype),)


OPERATORS = (
    Operator(
        "resample_forward(Tensor x, Tensor taps, int down, int origin, SymInt length) -> Tensor",
        {"x": Operand(1), "taps": Operand(2)},
        (Operand(1, exact=True),),
        shapes,
    ),
)
