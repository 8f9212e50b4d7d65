"""Schemas and checks of the detectors of dynamics processors.

Ballistics: y[t] = y[t-1] + c (x[t] - y[t-1]), with c = rise where x[t] > y[t-1] and c = fall elsewhere: the "smooth
branching" detector of D. Giannoulis, M. Massberg and J. D. Reiss, Digital Dynamic Range Compressor Design: A Tutorial
and Analysis, J. Audio Eng. Soc. 60, 2012. Coefficients are float64 (..., 2), rise and fall in [0, 1]; states, the last
output, float64 (...).

Dynamics gain: levels of a key, in dB, go through a static curve, the curve's gains through ballistics, as that paper
recommends. `SETTINGS` are float64 (..., 8). Leading dimensions broadcast with the signal's.
"""

from __future__ import annotations

import torch
from torch import Tensor

from torchfx._ops.checks import check_coefficients, check_signal, check_state, leading_dimensions
from torchfx._ops.operator import Operand, Operator, Shapes
from torchfx.errors import ArgumentError

__all__ = ["OPERATORS", "SETTINGS"]

SETTINGS = ("threshold_db", "above", "below", "knee_db", "lowest_db", "makeup_db", "rise", "fall")
"""With o = level - threshold_db and k(o) = 0 below the knee, o above it and (o + knee/2)^2 / (2 knee) within, the curve
is max(above k(o) + below k(-o), lowest_db); makeup_db is added behind the ballistics."""

SIGNAL, ROW, STATE, RESULT = Operand(1), Operand(1), Operand(0, exact=True), Operand(1, exact=True)


def ballistics_shapes(x: Tensor, coefficients: Tensor, state: Tensor | None) -> Shapes:
    """Return shapes and dtypes of output and state after."""
    return _shapes(x, "coefficients", coefficients, 2, state)


def gain_shapes(key: Tensor, settings: Tensor, state: Tensor | None) -> Shapes:
    """Return shapes and dtypes of gain and state after."""
    return _shapes(key, "settings", settings, len(SETTINGS), state)


def maximum_shapes(x: Tensor, window: int) -> Shapes:
    """Return shape and dtype of the maxima."""
    check_signal(x)
    if not 1 <= window <= x.shape[-1] + 1:
        raise ArgumentError(f"window must lie in [1, {x.shape[-1] + 1}] for {x.shape[-1]} samples, got {window}")
    return (((*x.shape[:-1], x.shape[-1] - window + 1), x.dtype),)


def _shapes(x: Tensor, name: str, values: Tensor, width: int, state: Tensor | None) -> Shapes:
    check_signal(x)
    check_coefficients(name, values, f"(..., {width})", (width,), x)
    leading = leading_dimensions(name, values, 1, x)
    if state is not None:
        check_state(state, leading, x)
    return ((*leading, x.shape[-1]), x.dtype), (leading, torch.float64)


OPERATORS = (
    Operator(
        "ballistics_forward(Tensor x, Tensor coefficients, Tensor? state=None) -> (Tensor y, Tensor after)",
        {"x": SIGNAL, "coefficients": ROW, "state": STATE},
        (RESULT, STATE),
        ballistics_shapes,
    ),
    Operator(
        "dynamics_gain(Tensor key, Tensor settings, Tensor? state=None) -> (Tensor gain, Tensor after)",
        {"key": SIGNAL, "settings": ROW, "state": STATE},
        (RESULT, STATE),
        gain_shapes,
    ),
    # y[t] is the largest of x[t] ... x[t + window - 1].
    Operator("sliding_max(Tensor x, int window) -> Tensor", {"x": SIGNAL}, (RESULT,), maximum_shapes),
)
