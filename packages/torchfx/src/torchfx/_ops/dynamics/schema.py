"""Schemas and checks of the detectors of dynamics processors.

Ballistics: y[t] = y[t-1] + c (x[t] - y[t-1]), with c = rise where x[t] > y[t-1] and c = fall elsewhere: the "smooth
branching" detector of D. Giannoulis, M. Massberg and J. D. Reiss, Digital Dynamic Range Compressor Design: A Tutorial
and Analysis, J. Audio Eng. Soc. 60, 2012. Coefficients are float64 (..., 2), rise and fall in [0, 1]; states, the last
output, float64 (...).

Dynamics: levels of a key, in dB, go through a static curve, the curve's gains through ballistics, as that paper
recommends, and multiply a signal. `SETTINGS` are float64 (..., 8). Leading dimensions broadcast with the key's.

Limiter: with z the signal after `past`, z[t] times 1 less the mean of r[t - ahead ... t], where r follows
1 - threshold / max(largest of peaks[t ... t + window - 1], threshold) up at once and down with the coefficient `fall`.

`link` is the dimension, from the end, whose channels share a gain: that of the largest magnitude among them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from torchfx._ops.checks import broadcast_shapes, check_coefficients, check_signal, check_state, leading_dimensions
from torchfx._ops.operator import Operand, Operator, Shapes
from torchfx.errors import ArgumentError

__all__ = ["OPERATORS", "SETTINGS", "linked"]

SETTINGS = ("threshold_db", "above", "below", "knee_db", "lowest_db", "makeup_db", "rise", "fall")
"""With o = level - threshold_db and k(o) = 0 below the knee, o above it and (o + knee/2)^2 / (2 knee) within, the curve
is max(above k(o) + below k(-o), lowest_db); makeup_db is added after the ballistics."""

SIGNAL, ROW, STATE, RESULT = Operand(1), Operand(1), Operand(0, exact=True), Operand(1, exact=True)


def ballistics_shapes(x: Tensor, coefficients: Tensor, state: Tensor | None) -> Shapes:
    """Return shapes and dtypes of output and state after."""
    check_signal(x)
    check_coefficients("coefficients", coefficients, "(..., 2)", (2,), x)
    leading = leading_dimensions("coefficients", coefficients, 1, x)
    if state is not None:
        check_state(state, leading, x)
    return ((*leading, x.shape[-1]), x.dtype), (leading, torch.float64)


def dynamics_shapes(x: Tensor, key: Tensor | None, settings: Tensor, state: Tensor | None, link: int | None) -> Shapes:
    """Return shapes and dtypes of output and state after."""
    check_signal(x)
    heard = x if key is None else key
    if key is not None:
        _check_like(x, "key", key, x.shape[-1])
    check_coefficients("settings", settings, f"(..., {len(SETTINGS)})", (len(SETTINGS),), x)
    leading = leading_dimensions("settings", settings, 1, linked(heard, link))
    if state is not None:
        check_state(state, leading, x)
    return ((*broadcast_shapes(x=x.shape[:-1], gain=leading), x.shape[-1]), x.dtype), (leading, torch.float64)


def limiter_shapes(
    x: Tensor, past: Tensor, peaks: Tensor | None, settings: Tensor, state: Tensor, ramp: Tensor, link: int | None
) -> Shapes:
    """Return shapes and dtypes of output, state and ramp after."""
    check_signal(x)
    _check_like(x, "past", past, past.shape[-1])
    time, own = x.shape[-1], broadcast_shapes(x=x.shape[:-1], past=past.shape[:-1])
    heard = x.expand(*own, time)
    if peaks is not None:
        heard = peaks
        _check_like(x, "peaks", peaks, max(peaks.shape[-1], time))
    check_coefficients("settings", settings, "(..., 2)", (2,), x)
    leading = leading_dimensions("settings", settings, 1, linked(heard, link))
    check_state(state, leading, x)
    check_state(ramp, (*leading, ramp.shape[-1]), x, "ramp")
    y = (*broadcast_shapes(x=own, gain=leading), time)
    return (y, x.dtype), (leading, torch.float64), (tuple(ramp.shape), torch.float64)


def linked(x: Tensor, link: int | None) -> Tensor:
    """Return a view of one channel of those that share a gain."""
    return x if link is None or x.dim() < -link else x.narrow(link, 0, min(1, x.shape[link]))


def _check_like(x: Tensor, name: str, other: Tensor, samples: int) -> None:
    if other.shape[-1] != samples or other.dtype is not x.dtype or other.device != x.device:
        raise ArgumentError(
            f"{name} must hold {samples} samples of {x.dtype} on {x.device}, "
            f"got {other.shape[-1]} of {other.dtype} on {other.device}"
        )


def maximum_shapes(x: Tensor, window: int) -> Shapes:
    """Return shape and dtype of the maxima."""
    check_signal(x)
    if not 1 <= window <= x.shape[-1] + 1:
        raise ArgumentError(f"window must lie in [1, {x.shape[-1] + 1}] for {x.shape[-1]} samples, got {window}")
    return (((*x.shape[:-1], x.shape[-1] - window + 1), x.dtype),)


OPERATORS = (
    Operator(
        "ballistics_forward(Tensor x, Tensor coefficients, Tensor? state=None) -> (Tensor y, Tensor after)",
        {"x": SIGNAL, "coefficients": ROW, "state": STATE},
        (RESULT, STATE),
        ballistics_shapes,
    ),
    Operator(
        "dynamics_forward(Tensor x, Tensor? key, Tensor settings, Tensor? state=None, int? link=None)"
        " -> (Tensor y, Tensor after)",
        {"x": SIGNAL, "key": SIGNAL, "settings": ROW, "state": STATE},
        (RESULT, STATE),
        dynamics_shapes,
    ),
    Operator(
        "limiter_forward(Tensor x, Tensor past, Tensor? peaks, Tensor settings, Tensor state, Tensor ramp,"
        " int? link=None) -> (Tensor y, Tensor after, Tensor ramp_after)",
        {"x": SIGNAL, "past": SIGNAL, "peaks": SIGNAL, "settings": ROW, "state": STATE, "ramp": RESULT},
        (RESULT, STATE, RESULT),
        limiter_shapes,
    ),
    # y[t] is the largest of x[t] ... x[t + window - 1].
    Operator("sliding_max(Tensor x, int window) -> Tensor", {"x": SIGNAL}, (RESULT,), maximum_shapes),
)
