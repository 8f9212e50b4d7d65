"""Schema and checks of the pass from samples to bands of spectra.

Frame f of a signal begins at sample f hop - origin and has as many samples as the window. With X_f the discrete Fourier
transform of the windowed frame, followed by zeros up to n_fft samples, band m has

    e[m, f] = sum over k of filters[m, k] |X_f[k]|^power

and the result is e, or with gain != 0 its logarithm, gain log(max(e + offset, floor)). Where the window is shorter than
n_fft, other ways to place it among the zeros change phases alone, and no result here.

Before the window, a frame's mean is subtracted (`centred`), then preemphasis p makes x[n] - p x[n - 1] of it and
x[0] - p x[0] of its first sample, as Kaldi does (`ProcessWindow` in feature-window.cc).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from torchfx._ops.checks import check_coefficients, check_signal
from torchfx._ops.operator import Operand, Operator, Shapes
from torchfx.errors import ArgumentError, TorchFXError

__all__ = ["OPERATORS", "Pass"]

SMALLEST = 2e-38
"""Whose logarithm is taken at least: a normal float."""


@dataclass(slots=True)
class Pass:
    """The arguments of a pass after its signal; `torchfx._ops.mel_forward` says what each is."""

    window: Tensor
    filters: Tensor | None
    n_fft: int
    hop: int
    origin: int
    count: int
    reflect: bool
    power: float
    preemphasis: float
    centred: bool
    gain: float
    floor: float
    offset: float


def shapes(x: Tensor, *arguments: Any) -> Shapes:
    """Return shape and dtype of the bands."""
    of = Pass(*arguments)
    window, filters, n_fft = of.window, of.filters, of.n_fft
    check_signal(x)
    check_coefficients("window", window, "(n,)", (None,), x)
    bins, length = n_fft // 2 + 1, window.shape[-1]
    if window.dim() != 1 or length > n_fft:
        raise ArgumentError(f"window must have the shape (n,) with n <= n_fft = {n_fft}, got {tuple(window.shape)}")
    if filters is not None:
        check_coefficients("filters", filters, f"(bands >= 1, n_fft // 2 + 1 = {bins})", (None, bins), x)
        if filters.dim() != 2:
            raise ArgumentError(f"filters must have the shape (bands >= 1, {bins}), got {tuple(filters.shape)}")
    if of.hop < 1:
        raise ArgumentError(f"hop must be >= 1, got {of.hop}")
    if of.count < 0:
        raise ArgumentError(f"count must be >= 0, got {of.count}")
    if not of.power > 0:
        raise ArgumentError(f"power must be > 0, got {of.power}")
    if of.gain and not (of.floor >= SMALLEST or of.offset >= SMALLEST):
        raise ArgumentError(f"floor or offset must be >= {SMALLEST}, got {of.floor} and {of.offset}")
    behind = (of.count - 1) * of.hop - of.origin + length - x.shape[-1]
    if of.reflect and of.count and max(of.origin, behind) >= x.shape[-1]:
        raise ArgumentError(
            f"x must be longer than the reflection at its ends, {max(of.origin, behind)} samples, got {x.shape[-1]}"
        )
    return (((*x.shape[:-1], bins if filters is None else filters.shape[-2], of.count), x.dtype),)


def gradient_shapes(grad_y: Tensor, x: Tensor, *rest: Any) -> Shapes:
    """Return shape and dtype of the samples' gradient."""
    ((shape, dtype),) = shapes(x, *rest)
    if tuple(grad_y.shape) != tuple(shape) or grad_y.dtype != dtype:
        raise TorchFXError(f"grad_y must be {dtype} of shape {tuple(shape)}, got {grad_y.dtype} {tuple(grad_y.shape)}")
    return ((x.shape, x.dtype),)


PASS = (
    "Tensor x, Tensor window, Tensor? filters, int n_fft, int hop, int origin, int count, bool reflect, float power,"
    " float preemphasis, bool centred, float gain, float floor, float offset"
)
OPERANDS = {"x": Operand(1), "window": Operand(1, exact=True), "filters": Operand(2, exact=True)}
OPERATORS = (
    Operator(f"mel_forward({PASS}) -> Tensor", OPERANDS, (Operand(2, exact=True),), shapes),
    Operator(
        f"mel_backward(Tensor grad_y, {PASS}) -> Tensor",
        {"grad_y": Operand(2), **OPERANDS},
        (Operand(1, exact=True),),
        gradient_shapes,
    ),
)
