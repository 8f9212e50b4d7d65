"""The same in plain PyTorch, differentiable any number of times, on any device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from torchfx._ops.mel.schema import Pass

__all__ = ["framed"]


def mel_forward(
    operators: Mapping[str, Callable[..., Any]],
    x: Tensor,
    *settings: Any,
) -> Tensor:
    """Compute all frames at once, in the signal's precision."""
    of = Pass(*settings)
    bins = of.n_fft // 2 + 1 if of.filters is None else of.filters.shape[-2]
    if of.count == 0 or x.numel() == 0:
        return x.new_zeros(*x.shape[:-1], bins, of.count)
    frames = framed(x, of.window.shape[-1], of.hop, of.origin, of.count, of.reflect)
    frames = _conditioned(frames, of.preemphasis, of.centred)
    spectrum = torch.view_as_real(torch.fft.rfft(frames * of.window.to(x.dtype), of.n_fft))
    found = spectrum.square().sum(-1).transpose(-1, -2)
    if of.power != 2:  # the slope of |X| is infinite at 0, and taken for 0
        silent = found == 0
        found = torch.where(silent, 0.0, torch.where(silent, 1.0, found) ** (of.power / 2))
    if of.filters is not None:
        found = of.filters.to(x.dtype) @ found
    return of.gain * (found + of.offset).clamp(min=of.floor).log() if of.gain else found


def mel_backward(
    operators: Mapping[str, Callable[..., Any]],
    grad_y: Tensor,
    x: Tensor,
    *settings: Any,
) -> Tensor:
    """Compute the gradient of the samples, each step of `mel_forward` transposed."""
    of = Pass(*settings)
    if of.count == 0 or x.numel() == 0:
        return torch.zeros_like(x)
    time, length = x.shape[-1], of.window.shape[-1]
    at = (torch.arange(of.count, device=x.device)[:, None] * of.hop - of.origin) + torch.arange(length, device=x.device)
    if of.reflect:
        at = torch.where(at < 0, -at, torch.where(at >= time, 2 * (time - 1) - at, at))
    inside = ((at >= 0) & (at < time)).to(x.dtype)
    at = at.clamp(0, time - 1)
    frames = x[..., at] * inside
    frames = _conditioned(frames, of.preemphasis, of.centred)
    taps = of.window.to(x.dtype)
    spectrum = torch.fft.rfft(frames * taps, of.n_fft)
    size = spectrum.abs()
    found = (size**of.power).transpose(-1, -2)
    bands = found if of.filters is None else of.filters.to(x.dtype) @ found
    grad = grad_y
    if of.gain:
        level = bands + of.offset
        grad = torch.where(level < of.floor, 0.0, grad * of.gain / level)
    if of.filters is not None:
        grad = of.filters.to(x.dtype).T @ grad
    slope = torch.where(size == 0, 0.0, of.power * torch.where(size == 0, 1.0, size) ** (of.power - 2))
    spectral = grad.transpose(-1, -2) * slope * spectrum
    halves = torch.full((of.n_fft // 2 + 1,), 0.5, dtype=x.dtype, device=x.device)
    halves[0] = 1.0
    if of.n_fft % 2 == 0:
        halves[-1] = 1.0
    given = torch.fft.irfft(spectral * halves, of.n_fft)[..., :length] * (of.n_fft * taps)
    if of.preemphasis:
        before = torch.cat([given[..., 1:], torch.zeros_like(given[..., :1])], dim=-1)
        before = before + torch.cat([given[..., :1], torch.zeros_like(given[..., 1:])], dim=-1)
        given = given - of.preemphasis * before
    if of.centred:
        given = given - given.mean(-1, keepdim=True)
    return torch.zeros_like(x).index_add(-1, at.flatten(), (given * inside).flatten(-2))


def _conditioned(frames: Tensor, preemphasis: float, centred: bool) -> Tensor:
    """Return frames without their means, if requested, and pre-emphasised."""
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
