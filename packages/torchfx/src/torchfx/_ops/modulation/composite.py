"""Oscillators in plain PyTorch, and what they modulate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from torchfx._ops.modulation.schema import HIGHEST, LEAST

Operators = Mapping[str, Callable[..., Any]]

COARSE_BITS = 24
"""Of an oscillator's turns per sample, behind the point: their product with up to 2^29 samples is exact."""


def modulated_gain_forward(operators: Operators, x: Tensor, settings: Tensor, phase: Tensor) -> tuple[Tensor, Tensor]:
    """Return the signal times its gain, and the phase behind it."""
    turns, middle, depth = settings[..., None].unbind(-2)
    sine, after = _oscillator(turns, phase, x.shape[-1])
    return (x * (middle + depth * sine)).to(x.dtype), after


def modulated_delay_forward(
    operators: Operators, x: Tensor, past: Tensor, settings: Tensor, phase: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the mix of the signal and the delayed one, and the phase behind it."""
    turns, centre, depth, mix = settings[..., None].unbind(-2)
    sine, after = _oscillator(turns, phase, x.shape[-1])
    both = torch.broadcast_shapes(x.shape[:-1], past.shape[:-1])
    heard = torch.cat([past.expand(*both, -1), x.expand(*both, -1)], dim=-1)
    delay = (centre + depth * sine).clamp(LEAST, past.shape[-1] - LEAST)
    return ((1 - mix) * x.double() + mix * _delayed(heard, delay)).to(x.dtype), after


def phaser_forward(
    operators: Operators, x: Tensor, settings: Tensor, phase: Tensor, state: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the mix of the signal and the filtered one, the phase behind it, and the filters' state."""
    turns, centre, octaves, mix = settings[..., None].unbind(-2)
    sine, phase_after = _oscillator(turns, phase, x.shape[-1])
    dry = x.double().expand_as(sine)
    if x.shape[-1] == 0:
        return dry.to(x.dtype), phase_after, state.clone()
    tangent = torch.tan(torch.pi * (centre * torch.exp2(octaves * sine)).clamp(max=HIGHEST))
    a = (tangent - 1) / (tangent + 1)
    system = torch.stack([-a, 1 - a * a, torch.ones_like(a), a], dim=-1).unflatten(-1, (2, 2))
    wet, after = dry, []
    for before in state.unbind(0):
        wet, left = operators["state_space_forward"](wet, system, before[..., None])
        after.append(left[..., 0])
    return ((1 - mix) * dry + mix * wet).to(x.dtype), phase_after, torch.stack(after)


def _oscillator(turns: Tensor, phase: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return an oscillator's sine at the next samples, float64 (..., count), and its phase behind them.

    Args:
        turns: per sample, (..., 1).
        phase: in turns, (...).
        count: how many samples.
    """
    n = torch.arange(count + 1, dtype=torch.float64, device=phase.device)
    coarse = (turns.detach() * 2**COARSE_BITS).round() / 2**COARSE_BITS  # n of these are exact, and so are their turns
    phases = phase[..., None] + ((coarse * n) % 1.0 + (turns - coarse) * n)
    return torch.sin(2 * torch.pi * phases[..., :-1]), phases[..., -1] % 1.0


def _delayed(x: Tensor, delay: Tensor) -> Tensor:
    """Return the end of a signal (..., n), delayed by a time of its own at each sample: float64 (..., time), >= 2.

    Cubics whose slopes at a sample are half the difference of its neighbours have a steady first derivative: so has the
    result, by the delay.
    """
    whole = delay.detach().ceil()
    f = whole - delay  # of the delay alone: a place in the signal has fewer digits behind the point
    n, time = x.shape[-1], delay.shape[-1]
    left = torch.arange(n - time, n, device=x.device) - whole.long()
    x = x.expand(*left.shape[:-1], n)
    weights = (
        f * (f * (2 - f) - 1) / 2,
        f * f * (3 * f - 5) / 2 + 1,
        f * (f * (4 - 3 * f) + 1) / 2,
        f * f * (f - 1) / 2,
    )
    first, *rest = (weight * x.gather(-1, left + k) for k, weight in enumerate(weights, start=-1))
    return first + rest[0] + rest[1] + rest[2]
