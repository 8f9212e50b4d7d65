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
    frames = _conditioned(frames, preemphasis, centred)
    spectrum = torch.view_as_real(torch.fft.rfft(frames * window.to(x.dtype), n_fft))
    found = spectrum.square().sum(-1).transpose(-1, -2)
    if power != 2:  # the slope of |X| is infinite at 0, and taken for 0
        silent = found == 0
        found = torch.where(silent, 0.0, torch.where(silent, 1.0, found) ** (power / 2))
    if filters is not None:
        found = filters.to(x.dtype) @ found
    return gain * (found + offset).clamp(min=floor).log() if gain else found


def mel_backward(
    operators: Mapping[str, Callable[..., Any]],
    grad_y: Tensor,
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
    """Compute the gradient of the samples, each step of `mel_forward` transposed."""
    if count == 0 or x.numel() == 0:
        return torch.zeros_like(x)
    time, length = x.shape[-1], window.shape[-1]
    at = (torch.arange(count, device=x.device)[:, None] * hop - origin) + torch.arange(length, device=x.device)
    if reflect:
        at = torch.where(at < 0, -at, torch.where(at >= time, 2 * (time - 1) - at, at))
    inside = ((at >= 0) & (at < time)).to(x.dtype)
    at = at.clamp(0, time - 1)
    frames = x[..., at] * inside
    frames = _conditioned(frames, preemphasis, centred)
    taps = window.to(x.dtype)
    spectrum = torch.fft.rfft(frames * taps, n_fft)
    size = spectrum.abs()
    found = (size**power).transpose(-1, -2)
    bands = found if filters is None else filters.to(x.dtype) @ found
    grad = grad_y
    if gain:
        level = bands + offset
        grad = torch.where(level < floor, 0.0, grad * gain / level)
    if filters is not None:
        grad = filters.to(x.dtype).T @ grad
    slope = torch.where(size == 0, 0.0, power * torch.where(size == 0, 1.0, size) ** (power - 2))
    spectral = grad.transpose(-1, -2) * slope * spectrum
    halves = torch.full((n_fft // 2 + 1,), 0.5, dtype=x.dtype, device=x.device)
    halves[0] = 1.0
    if n_fft % 2 == 0:
        halves[-1] = 1.0
    given = torch.fft.irfft(spectral * halves, n_fft)[..., :length] * (n_fft * taps)
    if preemphasis:
        before = torch.cat([given[..., 1:], torch.zeros_like(given[..., :1])], dim=-1)
        before = before + torch.cat([given[..., :1], torch.zeros_like(given[..., 1:])], dim=-1)
        given = given - preemphasis * before
    if centred:
        given = given - given.mean(-1, keepdim=True)
    return torch.zeros_like(x).index_add(-1, at.flatten(), (given * inside).flatten(-2))


def _conditioned(frames: Tensor, preemphasis: float, centred: bool) -> Tensor:
    """Return frames without their means, where that is asked for, and pre-emphasised."""
    if centred:
        frames = frames - frames.mean(-1, keepdim=True)
    if preemphasis:
        frames = frames - preemphasis * torch.cat([frames[..., :1], frames[..., :-1]], dim=-1)
    return frames


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
