"""Schema and checks of the phase vocoder.

With windows of n samples, output frame u lies around u hop and is read from the input around

    t(u) = floor(u hop rate + 1/2)

Let P and Q be the spectra of the windowed input around t(u) and around t(u) - hop, and Y' the spectrum of the output
frame before, u - 1. What is laid down, windowed again, is

    Y[k] = P[k] r[p],    r[p] = Y'[p] conj(Q[p]) / |Y'[p] conj(Q[p])|

with p the peak of |P| that is nearest to k: around a peak, all bins keep their phases relative to it. From one frame to
the next a peak's phase thus advances by what it does within `hop` samples of the input, whatever the rate. r is 1 where
Y' or Q is 0, and where there is no peak, as for a single click. A peak has more power than the two bins on each of its
sides.

Sources: J. Laroche, M. Dolson, Improved Phase Vocoder Time-Scale Modification of Audio, IEEE Trans. Speech and Audio
Processing 7 (3), 1999 (identity phase locking); M. Puckette, Phase-locked Vocoder, WASPAA 1995 (two windows, `hop`
apart, instead of an estimate of the frequency).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from torchfx._ops.checks import check_coefficients, check_signal, check_state
from torchfx._ops.operator import Operand, Operator, Shapes
from torchfx.errors import ArgumentError

__all__ = ["OPERATORS", "starts"]

SMALLEST = 256
"""Samples in a window: what the native transform begins at."""


def starts(n: int, rate: float, hop: int, first: int, origin: int, count: int) -> list[int]:
    """Return where in x the windows of frames `first`, `first` + 1, ... begin."""
    return [math.floor(u * hop * rate + 0.5) + origin - n // 2 for u in range(first, first + count)]


def shapes(
    x: Tensor, window: Tensor, state: Tensor | None, rate: float, hop: int, first: int, origin: int, count: int
) -> Shapes:
    """Return shapes and dtypes of the output and the state after."""
    check_signal(x)
    check_coefficients("window", window, "(n,)", (None,), x)
    n = window.shape[-1]
    if window.dim() != 1 or n < SMALLEST or n & (n - 1):
        raise ArgumentError(
            f"window must have the shape (n,), n a power of two >= {SMALLEST}, got {tuple(window.shape)}"
        )
    if not (1 <= hop < n and n % hop == 0):
        raise ArgumentError(f"hop must divide the window's {n} samples, got {hop}")
    if not rate > 0:
        raise ArgumentError(f"rate must be > 0, got {rate}")
    if count < 0:
        raise ArgumentError(f"count must be >= 0, got {count}")
    after = (*x.shape[:-1], n // 2 + 1, 2)
    if state is not None:
        check_state(state, after, x)
    return ((*x.shape[:-1], (count - 1) * hop + n), x.dtype), (after, torch.float64)


STATE = Operand(2, exact=True)

OPERATORS = (
    Operator(
        "phase_vocoder_forward(Tensor x, Tensor window, Tensor? state, float rate, int hop, int first, int origin,"
        " SymInt count) -> (Tensor y, Tensor after)",
        {"x": Operand(1), "window": Operand(1), "state": STATE},
        (Operand(1, exact=True), STATE),
        shapes,
    ),
)
