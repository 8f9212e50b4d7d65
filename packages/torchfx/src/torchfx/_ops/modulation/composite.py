"""Oscillators in plain PyTorch, and what they modulate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from torchfx._ops.modulation.schema import HIGHEST, LEAST
from torchfx._ops.observers import dual_level_active, modes_active, transforms_active

Operators = Mapping[str, Callable[..., Any]]

COARSE_BITS = 24
"""Fraction bits of an oscillator's turns per sample: their product with up to 2^29 samples is exact."""


def modulated_gain_forward(operators: Operators, x: Tensor, settings: Tensor, phase: Tensor) -> tuple[Tensor, Tensor]:
    """Return the signal times its gain, and the phase after it."""
    turns, middle, depth = settings[..., None].unbind(-2)
    sine, after = _oscillator(turns, phase, x.shape[-1])
    return (x * (middle + depth * sine)).to(x.dtype), after


def modulated_delay_forward(
    operators: Operators, x: Tensor, settings: Tensor, phase: Tensor, past: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the mix of the signal and the delayed one, the phase after it, and what comes before the next samples."""
    turns, centre, depth, mix, *feedback = settings[..., None].unbind(-2)
    sine, after = _oscillator(turns, phase, x.shape[-1])
    both = torch.broadcast_shapes(x.shape[:-1], past.shape[:-1])
    heard = torch.cat([past.expand(*both, -1), x.expand(*both, -1)], dim=-1)
    delay = (centre + depth * sine).clamp(LEAST, past.shape[-1] - LEAST)
    if feedback:
        wet, kept = _fed_back(heard, delay, feedback[0])
    else:
        wet, kept = _delayed(heard, delay), heard[..., x.shape[-1] :].expand(*delay.shape[:-1], -1).clone()
    return ((1 - mix) * x.double() + mix * wet).to(x.dtype), after, kept


def phaser_forward(
    operators: Operators, x: Tensor, settings: Tensor, phase: Tensor, state: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the mix of the signal and the filtered one, the phase after it, and the filters' state."""
    turns, centre, octaves, mix, *feedback = settings[..., None].unbind(-2)
    sine, phase_after = _oscillator(turns, phase, x.shape[-1])
    dry = x.double().expand_as(sine)
    if x.shape[-1] == 0:
        return dry.to(x.dtype), phase_after, state.clone()
    tangent = torch.tan(torch.pi * (centre * torch.exp2(octaves * sine)).clamp(max=HIGHEST))
    a = (tangent - 1) / (tangent + 1)
    if feedback:
        wet, left = _allpass_loop(dry, a, state, feedback[0][..., 0])
        return ((1 - mix) * dry + mix * wet).to(x.dtype), phase_after, left
    system = torch.stack([-a, 1 - a * a, torch.ones_like(a), a], dim=-1).unflatten(-1, (2, 2))
    wet, after = dry, []
    for before in state.unbind(0):
        wet, left = operators["state_space_forward"](wet, system, before[..., None])
        after.append(left[..., 0])
    return ((1 - mix) * dry + mix * wet).to(x.dtype), phase_after, torch.stack(after)


def _oscillator(turns: Tensor, phase: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return an oscillator's sine at the next samples, float64 (..., count), and its phase after them.

    Args:
        turns: per sample, (..., 1).
        phase: in turns, (...).
        count: how many samples.
    """
    n = torch.arange(count + 1, dtype=torch.float64, device=phase.device)
    coarse = (turns.detach() * 2**COARSE_BITS).round() / 2**COARSE_BITS  # n of these are exact, and so are their turns
    phases = phase[..., None] + ((coarse * n) % 1.0 + (turns - coarse) * n)
    return torch.sin(2 * torch.pi * phases[..., :-1]), phases[..., -1] % 1.0


def _fed_back(heard: Tensor, delay: Tensor, feedback: Tensor) -> tuple[Tensor, Tensor]:
    """Return what a line gives after a delay (..., time), which times the feedback is added to its input, and its end.

    In pieces no longer than the shortest delay; in single samples where delays cannot be read.

    Args:
        heard: (..., kept + time), the line's past and its input.
        delay: in samples.
        feedback: (..., 1).
    """
    time = delay.shape[-1]
    unreadable = modes_active() or transforms_active() or dual_level_active() or torch.compiler.is_compiling()
    shortest = LEAST if unreadable or delay.is_meta or delay.numel() == 0 else int(delay.min().nan_to_num(LEAST).ceil())
    piece = max(1, shortest - LEAST)  # a cubic reads LEAST samples more than what lies before the delay
    line, x = torch.split(heard.expand(*delay.shape[:-1], -1), [heard.shape[-1] - time, time], dim=-1)
    wet = [delay[..., :0]]
    for own, late in zip(x.split(piece, dim=-1), delay.split(piece, dim=-1), strict=True):
        wet.append(_delayed(torch.cat([line, own], dim=-1), late))
        line = torch.cat([line, (own + feedback * wet[-1]).to(x.dtype)], dim=-1)[..., own.shape[-1] :]
    return torch.cat(wet, dim=-1), line


def _allpass_loop(x: Tensor, a: Tensor, state: Tensor, feedback: Tensor) -> tuple[Tensor, Tensor]:
    """Return what filters make of x (..., time) + feedback times the same, and their state, sample by sample."""
    wet = []
    for sample, factor in zip(x.unbind(-1), a.unbind(-1), strict=True):
        rest = torch.zeros_like(sample)
        for s in state:
            rest = factor * rest + s
        v = (sample + feedback * rest) / (1 - feedback * factor ** len(state))
        after = []
        for s in state:
            y = factor * v + s
            after.append(v - factor * y)
            v = y
        state = torch.stack(after)
        wet.append(v)
    return torch.stack(wet, dim=-1), state


def _delayed(x: Tensor, delay: Tensor) -> Tensor:
    """Return the end of a signal (..., n), delayed by another time at each sample: float64 (..., time), >= 2.

    Cubics whose slopes at a sample are half the difference of its neighbours have a steady first derivative: so has the
    result, by the delay.
    """
    whole = delay.detach().ceil()
    f = whole - delay  # of the delay alone: a place in the signal has fewer digits after the point
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
