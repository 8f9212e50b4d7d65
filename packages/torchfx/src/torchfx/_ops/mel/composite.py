"""The same in plain PyTorch, differentiable any number of times, on any device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

__all__ = ["framed"]


def mel_forward(
    operators: Mapping[str, Callable[..., Any]],
    x: Tensor,
    window: Tensor,
    filters: Tensor | None,
    n_fft: int,
    hop: int,
    origin: int,
    count: int,
    reflect: bool,
    power: float,
    preemphasis: float,
    centred: bool,
    gain: float,
    floor: float,
    offset: float,
) -> Tensor:
    """Compute all frames at once, in the signal's precision."""
    bins = n_fft // 2 + 1 if filters is None else filters.shape[-2]
    if count == 0 or x.numel() == 0:
        return x.new_zeros(*x.shape[:-1], bins, count)
    frames = framed(x, window.shape[-1], hop, origin, count, reflect)
    if centred:
        frames = frames - frames.mean(-1, keepdim=True)
    if preemphasis:
        frames = frames - preemphasis * torch.cat([frames[..., :1], frames[..., :-1]], dim=-1)
    spectrum = torch.view_as_real(torch.fft.rfft(frames * window.to(x.dtype), n_fft))
    found = spectrum.square().sum(-1).transpose(-1, -2)
    if power != 2:  # the slope of |X| is infinite at 0, and taken for 0
        silent = found == 0
        found = torch.where(silent, 0.0, torch.where(silent, 1.0, found) ** (power / 2))
    if filters is not None:
        found = filters.to(x.dtype) @ found
    return gain * (found + offset).clamp(min=floor).log() if gain else found


def framed(x: Tensor, length: int, hop: int, origin: int, count: int, reflect: bool) -> Tensor:
    """Return frames (..., count, length) of a signal, which is reflected at its ends or has zeros beyond them."""
    time = x.shape[-1]
    low, high = -origin, (count - 1) * hop - origin + length
    before, behind = max(0, -low), max(0, high - time)
    inside = x[..., max(0, low) : max(0, min(high, time))]
    if reflect and (before or behind):
        # What is reflected may begin outside of the part that is read.
        ends = [x[..., 1 : before + 1].flip(-1)] if before else []
        tail = [x[..., time - 1 - behind : time - 1].flip(-1)] if behind else []
        whole = torch.cat([*ends, inside, *tail], dim=-1)
    else:
        whole = pad(inside, (before, behind))
    return whole.unfold(-1, length, hop)
