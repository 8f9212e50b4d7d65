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
"""The least relative difference between a peak's power and its neighbours', so that rounding makes no peaks."""


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
    last, tail = torch.complex(*state.unbind(-1)), x.new_zeros(*leading, n - hop, dtype=torch.float64)
    parts = []
    for i in range(0, count, AT_ONCE):
        some = min(AT_ONCE, count - i)
        now, before = _spectra(x, window, starts(n, rate, hop, first + i, origin, some), hop)
        since = torch.cat([last[..., None, :], now[..., :-1, :]], dim=-2) * _conjugate(before)
        laid = now * _turns(since, nearest_peaks(_power(now)))
        last = laid[..., -1, :]
        y = torch.fft.irfft(laid, n) * window
        y = added_up(y, hop) + pad(tail, (0, some * hop))
        parts.append(y[..., : some * hop])
        tail = y[..., some * hop :]
    return torch.cat([*parts, tail], dim=-1).to(x.dtype), torch.view_as_real(last)


def _spectra(x: Tensor, window: Tensor, start: list[int], hop: int) -> tuple[Tensor, Tensor]:
    """Return the spectra (..., frames, bins) of the windows that begin there, and `hop` samples before."""
    n = window.shape[-1]
    low, high = start[0] - hop, start[-1] + n
    inside = x[..., max(low, 0) : max(high, 0)].double()
    left = min(max(-low, 0), high - low)
    padded = pad(inside, (left, high - low - left - inside.shape[-1]))
    at = torch.tensor([each - low for each in start], device=x.device)[:, None] + torch.arange(n, device=x.device)
    now, before = (torch.fft.rfft(padded[..., each] * window) for each in (at, at - hop))
    return now, before


def _conjugate(spectrum: Tensor) -> Tensor:
    """Return the conjugate: `conj` is a view that forward derivatives can't be batched through."""
    re, im = torch.view_as_real(spectrum).unbind(-1)
    return torch.complex(re, -im)


def _power(spectrum: Tensor) -> Tensor:
    return torch.view_as_real(spectrum).square().sum(-1)


def _turns(since: Tensor, owners: Tensor) -> Tensor:
    """Return r (..., frames, bins) from unturned P conj(Q), its P that of the frame before, and each bin's peak.

    A bin's r is its peak's part of `since` over its magnitude, times r of the frame before at that peak. Frames are
    joined over 1, 2, 4, ... of them: joined, they too are a factor for each bin, and the bin it `comes` from.
    """
    square = _power(since)
    good, comes = (square > 0) & (square < torch.inf), owners.clamp(min=0)
    turns = torch.where(good, since, 1.0) * torch.where(good, square, 1.0).rsqrt()
    follows = (owners >= 0) & good.gather(-1, comes)
    turns, distance = torch.where(follows, turns.gather(-1, comes), 1.0), 1
    while distance < turns.shape[-2]:
        (old, late), (came, coming), (followed, following) = (
            (each[..., :-distance, :], each[..., distance:, :]) for each in (turns, comes, follows)
        )
        late = late * torch.where(following, old.gather(-1, coming), 1.0)
        turns, comes, follows = (
            torch.cat([each[..., :distance, :], joined], dim=-2)
            for each, joined in (
                (turns, late),
                (comes, came.gather(-1, coming)),
                (follows, following & followed.gather(-1, coming)),
            )
        )
        distance *= 2
    return turns


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


def added_up(frames: Tensor, hop: int) -> Tensor:
    """Return the sum of frames (..., frames, n), each `hop` after the one before."""
    pieces = frames.unflatten(-1, (-1, hop))
    overlap = pieces.shape[-2]
    total = sum(pad(pieces[..., i, :], (0, 0, i, overlap - 1 - i)) for i in range(overlap))
    assert isinstance(total, Tensor)
    return total.flatten(-2)
