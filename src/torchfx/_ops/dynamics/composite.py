"""The gain as level, curve and ballistics; sliding maxima of maxima. Plain PyTorch but for the ballistics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

Operators = Mapping[str, Callable[..., Any]]

QUIETEST = 1e-15
"""Levels end at -300 dB."""


def dynamics_gain(operators: Operators, key: Tensor, settings: Tensor, state: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return the factor of each sample, and the last smoothed gain in dB."""
    threshold, above, below, knee, lowest, makeup = (each[..., None] for each in settings[..., :6].unbind(-1))
    over = 20 * torch.log10(key.double().abs().clamp(min=QUIETEST)) - threshold
    bent, straight = over + knee / 2, over >= knee / 2
    within = (bent > 0) & ~straight
    # In the knee alone: elsewhere its width may be 0, and its gradient none.
    parabola = torch.where(within, bent, 0.0).square() / (2 * torch.where(within, knee, 1.0))
    k = torch.where(straight, over, parabola)
    k = torch.where(bent > 0, k, 0.0)
    curve = torch.maximum(above * k + below * (k - over), lowest)
    gain, after = operators["ballistics_forward"](curve, settings[..., 6:], state)
    return (10 ** ((gain + makeup) / 20)).to(key.dtype), after


def sliding_max(operators: Operators, x: Tensor, window: int) -> Tensor:
    """Return maxima over 1, 2, 4, ... samples, each of two of the maxima before."""
    width = 1
    while width < window:
        shift = min(width, window - width)
        x, width = torch.maximum(x[..., shift:], x[..., : x.shape[-1] - shift]), width + shift
    return x
