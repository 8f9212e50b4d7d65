"""White noise that depends on seed, channel and sample alone, by the numbers of `_ops.noise_forward`."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from torchfx import _ops
from torchfx.tensors import settings_on

__all__ = ["CHANNEL", "key_of", "normal", "places"]

CHANNEL = 2**40
"""Between the places of two channels: no signal is as long."""

SEEDS = 0x9E3779B97F4A7C15
"""Between the keys of two seeds, modulo 2^62: they lie far apart."""


def places(position: Tensor, shape: Sequence[int]) -> Tensor:
    """Return where the numbers of a signal's channels begin, for leading dimensions `shape`; examples share them.

    Args:
        position: int64, (1,): how many samples there were before.
        shape: (..., channels), or () for a signal without channels.
    """
    if not shape:
        return position[0]
    return position + CHANNEL * torch.arange(shape[-1], device=position.device)


def key_of(seed: int) -> int:
    """Return the key of a seed's noise."""
    return (seed + 1) * SEEDS % 2**62


def normal(place: Tensor, time: int, key: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """Return normally distributed numbers from each place (...) on, (..., time), the same for the same arguments."""
    silence = torch.zeros((), dtype=dtype, device=place.device).expand(*place.shape, time)
    return _ops.noise_forward(silence, settings_on(1.0, place.device), place, key, "normal")
