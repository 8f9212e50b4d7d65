"""The phase vocoder in plain PyTorch, differentiable, on any device that has float64."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from torchfx._ops.phase_vocoder.schema import starts

AT_ONCE = 256
"""Frames whose spectra are in memory together."""

MARGIN = 1e-9
"""What a peak's power has more than its neighbours', as a part of it: rounding makes no peaks."""


def phase_vocoder_forward(
    operators: Mapping[str, Callable[..., Any]],
    x: Tensor,
    window: Tensor,
    state: Tensor | None,
    rate: float,
    hop: int,
    first: int,
    origin: int,
    count: int,
) -> tuple[Tensor, Tensor]:
    """Stretch some frames at a time."""
    n, leading = window.shape[-1], x.shape[:-1]
    if state is None:
        state = x.new_zeros(*leading, n // 2 + 1, 2, dtype=torch.float64)
    if 0 in leading:  # some FFT libraries refuse no signals
        return x.new_zeros(*leading, (count - 1) * hop + n), state
    (re, im), tail = state.unbind(-1), x.new_zeros(*leading, n - hop, dtype=torch.float64)
    parts = []
    for i in range(0, count, AT_ONCE):
        some = min(AT_ONCE, count - i)
        now_re, now_im, before_re, before_im = _spectra(x, window, starts(n, rate, hop, first + i, origin, some), hop)
        owners = nearest_peaks(now_re.square() + now_im.square())
        frames = []
        for u in range(some):
            a, b, peak = before_re[..., u, :], before_im[..., u, :], owners[..., u, :]
            there = peak.clamp(min=0)
            c, d = _unit((re * a + im * b).gather(-1, there), (im * a - re * b).gather(-1, there))
            c, d = torch.where(peak < 0, 1.0, c), torch.where(peak < 0, 0.0, d)
            a, b = now_re[..., u, :], now_im[..., u, :]
            re, im = a * c - b * d, a * d + b * c
            frames.append(torch.complex(re, im))
        y = torch.fft.irfft(torch.stack(frames, dim=-2), n) * window
        y = added_up(y, hop) + pad(tail, (0, some * hop))
        parts.append(y[..., : some * hop])
        tail = y[..., some * hop :]
    return torch.cat([*parts, tail], dim=-1).to(x.dtype), torch.stack([re, im], dim=-1)


def _spectra(x: Tensor, window: Tensor, start: list[int], hop: int) -> tuple[Tensor, ...]:
    """Return real and imaginary parts (..., frames, bins) of the windows that begin there, and `hop` samples before."""
    n = window.shape[-1]
    low, high = start[0] - hop, start[-1] + n
    inside = x[..., max(low, 0) : max(high, 0)].double()
    left = min(max(-low, 0), high - low)
    padded = pad(inside, (left, high - low - left - inside.shape[-1]))
    at = torch.tensor([each - low for each in start], device=x.device)[:, None] + torch.arange(n, device=x.device)
    spectra = [torch.view_as_real(torch.fft.rfft(padded[..., each] * window)) for each in (at, at - hop)]
    return tuple(part for each in spectra for part in each.unbind(-1))


def nearest_peaks(power: Tensor) -> Tensor:
    """Return for each bin (..., bins) the number of the nearest peak, the lower one of two; -1 where none is."""
    bins = power.shape[-1]
    around = pad(power, (2, 2), value=-1.0)
    left = torch.maximum(around[..., 1 : bins + 1], around[..., :bins])
    right = torch.maximum(around[..., 3 : bins + 3], around[..., 4:])
    peak, at = power * (1 - MARGIN) > torch.maximum(left, right), torch.arange(bins, device=power.device)
    below = torch.where(peak, at, -2 * bins).cummax(-1).values
    above = torch.where(peak, at, 3 * bins).flip(-1).cummin(-1).values.flip(-1)
    nearest = torch.where(at - below <= above - at, below, above)
    return torch.where((nearest >= 0) & (nearest < bins), nearest, -1)


def _unit(re: Tensor, im: Tensor) -> tuple[Tensor, Tensor]:
    """Return a number over its magnitude, and 1 for 0 and what is not finite."""
    square = re.square() + im.square()
    good = (square > 0) & (square < torch.inf)
    scale = torch.where(good, square, 1.0).rsqrt()
    return torch.where(good, re * scale, 1.0), torch.where(good, im * scale, 0.0)


def added_up(frames: Tensor, hop: int) -> Tensor:
    """Return the sum of frames (..., frames, n), each `hop` behind the one before."""
    pieces = frames.unflatten(-1, (-1, hop))
    overlap = pieces.shape[-2]
    total = sum(pad(pieces[..., i, :], (0, 0, i, overlap - 1 - i)) for i in range(overlap))
    assert isinstance(total, Tensor)
    return total.flatten(-2)
