"""Schemas and checks of what swings with an oscillator s[n] = sin(2 pi (phase + turns n)).

    gain      y[n] = x[n] (middle + depth s[n])
    delay     y[n] = (1 - mix) x[n] + mix v[n], v[n] = w(n - d), w[n] = x[n] + feedback v[n],
              d = centre + depth s[n] samples
    phaser    y = (1 - mix) x + mix v, v = x + feedback v after all-pass filters (a + 1/z) / (1 + a/z),
              a = (w - 1) / (w + 1), w = tan(pi f), f = centre 2^(octaves s[n]) cycles per sample, at most `HIGHEST`

Settings are float64 (..., n), `GAIN`, `DELAY` or `PHASER`; leading dimensions broadcast with the signal's. The last
setting of a delay or a phaser is the feedback. It may be omitted: derivatives then need no loop over the samples.
Phases are float64 (...), in turns. `past` (..., kept) holds the last w. A delay is at least `LEAST` samples, at
most as many less than kept; between samples, w is interpolated by Catmull-Rom cubics (E. Catmull, R. Rom, A Class of
Local Interpolating Splines, 1974). The filters' state is float64 (stages, ...): s' of y = a x + s', s' = x - a y.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from torchfx._ops.checks import broadcast_shapes, check_coefficients, check_signal, check_state, leading_dimensions
from torchfx._ops.operator import Operand, Operator, Shapes
from torchfx.errors import ArgumentError

__all__ = ["DELAY", "GAIN", "HIGHEST", "LEAST", "OPERATORS", "PHASER"]

GAIN = ("turns", "middle", "depth")
DELAY = ("turns", "centre", "depth", "mix", "feedback")
PHASER = ("turns", "centre", "octaves", "mix", "feedback")

LEAST = 2
"""Samples of delay that the interpolation takes."""

HIGHEST = 0.49
"""Limits of a filter's corner, in cycles per sample."""

SIGNAL, ROW, PHASE, STATE = Operand(1), Operand(1), Operand(0, exact=True), Operand(0, lead=1, exact=True)
RESULT = Operand(1, exact=True)


def gain_shapes(x: Tensor, settings: Tensor, phase: Tensor) -> Shapes:
    """Return shapes and dtypes of output and phase after."""
    return _shapes(x, settings, phase, GAIN, x)


def delay_shapes(x: Tensor, settings: Tensor, phase: Tensor, past: Tensor) -> Shapes:
    """Return shapes and dtypes of output, phase and past after."""
    check_signal(x)
    if past.shape[-1:].numel() < 2 * LEAST or past.dim() == 0 or past.dtype is not x.dtype or past.device != x.device:
        raise ArgumentError(
            f"past must hold at least {2 * LEAST} samples of {x.dtype} on {x.device}, "
            f"got {tuple(past.shape)} of {past.dtype} on {past.device}"
        )
    both = broadcast_shapes(x=x.shape[:-1], past=past.shape[:-1])
    y, after = _shapes(x, settings, phase, DELAY, x.expand(*both, x.shape[-1]))
    return y, after, ((*y[0][:-1], past.shape[-1]), x.dtype)


def phaser_shapes(x: Tensor, settings: Tensor, phase: Tensor, state: Tensor) -> Shapes:
    """Return shapes and dtypes of output, phase and state after."""
    y, after = _shapes(x, settings, phase, PHASER, x)
    if state.dim() == 0 or state.shape[0] == 0:
        raise ArgumentError(f"state must have the shape (stages >= 1, ...), got {tuple(state.shape)}")
    of_filters = (state.shape[0], *y[0][:-1])
    check_state(state, of_filters, x)
    return y, after, (of_filters, torch.float64)


def _shapes(x: Tensor, settings: Tensor, phase: Tensor, names: Sequence[str], heard: Tensor) -> Shapes:
    check_signal(x)
    width = len(names) - (names[-1] == "feedback" and settings.shape[-1:] == (len(names) - 1,))
    check_coefficients("settings", settings, f"(..., {len(names)})", (width,), x)
    leading = leading_dimensions("settings", settings, 1, heard)
    check_state(phase, leading, x, "phase")
    return ((*leading, x.shape[-1]), x.dtype), (leading, torch.float64)


OPERATORS = (
    Operator(
        "modulated_gain_forward(Tensor x, Tensor settings, Tensor phase) -> (Tensor y, Tensor after)",
        {"x": SIGNAL, "settings": ROW, "phase": PHASE},
        (RESULT, PHASE),
        gain_shapes,
    ),
    Operator(
        "modulated_delay_forward(Tensor x, Tensor settings, Tensor phase, Tensor past)"
        " -> (Tensor y, Tensor phase_after, Tensor after)",
        {"x": SIGNAL, "settings": ROW, "phase": PHASE, "past": SIGNAL},
        (RESULT, PHASE, RESULT),
        delay_shapes,
    ),
    Operator(
        "phaser_forward(Tensor x, Tensor settings, Tensor phase, Tensor state)"
        " -> (Tensor y, Tensor phase_after, Tensor after)",
        {"x": SIGNAL, "settings": ROW, "phase": PHASE, "state": STATE},
        (RESULT, PHASE, STATE),
        phaser_shapes,
    ),
)
