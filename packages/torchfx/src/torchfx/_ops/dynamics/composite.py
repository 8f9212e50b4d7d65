"""Dynamics and limiters as levels, curves and ballistics, sliding maxima as maxima of maxima."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

Operators = Mapping[str, Callable[..., Any]]

QUIETEST = 1e-15
"""Levels end at -300 dB."""


def dynamics_forward(
    operators: Operators, x: Tensor, key: Tensor | None, settings: Tensor, state: Tensor | None, link: int | None
) -> tuple[Tensor, Tensor]:
    """Return the signal times its gain, and the last smoothed gain in dB."""
    level = peaks_of(x if key is None else key, link)
    threshold, above, below, knee, lowest, makeup = (each[..., None] for each in settings[..., :6].unbind(-1))
    over = 20 * torch.log10(level.double().clamp(min=QUIETEST)) - threshold
    bent, straight = over + knee / 2, over >= knee / 2
    within = (bent > 0) & ~straight
    # In the knee alone: elsewhere its width may be 0, and its gradient none.
    parabola = torch.where(within, bent, 0.0).square() / (2 * torch.where(within, knee, 1.0))
    k = torch.where(straight, over, parabola)
    k = torch.where(bent > 0, k, 0.0)
    curve = torch.maximum(above * k + below * (k - over), lowest)
    gain, after = operators["ballistics_forward"](curve, settings[..., 6:], state)
    return (x * 10 ** ((gain + makeup) / 20)).to(x.dtype), after


def limiter_forward(
    operators: Operators,
    x: Tensor,
    past: Tensor,
    peaks: Tensor | None,
    settings: Tensor,
    state: Tensor,
    ramp: Tensor,
    link: int | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the signal, late and limited, what is taken away at its end, and the last of that."""
    time, own = x.shape[-1], torch.broadcast_shapes(x.shape[:-1], past.shape[:-1])
    late = torch.cat([past.expand(*own, -1), x.expand(*own, -1)], dim=-1)
    peaks = peaks_of(late if peaks is None else peaks, link)
    threshold, fall = settings[..., None].unbind(-2)
    loudest = operators["sliding_max"](peaks, peaks.shape[-1] - time + 1).double()
    times = torch.stack([torch.ones_like(fall), fall], dim=-1).squeeze(-2)
    taken, state = operators["ballistics_forward"](1 - threshold / torch.maximum(loudest, threshold), times, state)
    taken, ahead = torch.cat([ramp, taken], dim=-1), ramp.shape[-1]
    mean = taken
    if ahead:
        mean = operators["fir_forward"](taken, taken.new_full((ahead + 1,), 1 / (ahead + 1)), None)[0][..., ahead:]
    y, bound = (late[..., :time] * (1 - mean)).to(x.dtype), threshold.to(x.dtype)
    return torch.minimum(torch.maximum(y, -bound), bound), state, taken[..., time:]


def peaks_of(x: Tensor, link: int | None) -> Tensor:
    """Return magnitudes, of the channels that share a gain the largest."""
    return x.abs() if link is None or x.dim() < -link else x.abs().amax(link, keepdim=True)


def sliding_max(operators: Operators, x: Tensor, window: int) -> Tensor:
    """Return maxima over 1, 2, 4, ... samples, each of two of the maxima before."""
    width = 1
    while width < window:
        shift = min(width, window - width)
        x, width = torch.maximum(x[..., shift:], x[..., : x.shape[-1] - shift]), width + shift
    return x
