"""The finite impulse response in plain PyTorch: overlap-add with SciPy's state, directly or through one transform."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["DIRECT_TAPS", "direct", "through_fft"]

DIRECT_TAPS = 128  # from here on the transform is faster in plain PyTorch


def direct(x: Tensor, taps: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Filter (channels, time) float64 as a sum over taps, from `state` (channels, taps - 1)."""
    reach = taps.numel() - 1
    full = torch.nn.functional.conv1d(x[:, None], taps.flip(0)[None, None], padding=reach)[:, 0]
    return _split(full, x.shape[-1], state)


def through_fft(x: Tensor, taps: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Filter (channels, time) float64 as a product of spectra, from `state` (channels, taps - 1)."""
    size = x.shape[-1] + taps.numel() - 1
    full = torch.fft.irfft(torch.fft.rfft(x, size) * torch.fft.rfft(taps, size), size)
    return _split(full, x.shape[-1], state)


def _split(full: Tensor, time: int, state: Tensor) -> tuple[Tensor, Tensor]:
    """Add what past input still owed; the first `time` samples are the output, the rest is owed to the future."""
    full = torch.cat([full[:, : state.shape[-1]] + state, full[:, state.shape[-1] :]], dim=-1)
    return full[:, :time], full[:, time:]
