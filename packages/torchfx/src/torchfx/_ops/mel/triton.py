"""The same on CUDA tensors: kernels.py before and after the device's transform, on the current stream."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torchfx._ops import triton_launch
from torchfx._ops.mel import composite
from torchfx._ops.mel.schema import Pass
from torchfx._ops.memory import packed, signal_rows

why_missing = triton_launch.why_missing

BLOCK = {"BLOCK": 512, "num_warps": 4}
"""How many samples of a frame a program takes at once; not measured."""

SHAPE = {"FRAMES": 64, "BANDS": 16, "DEPTH": 32, "num_warps": 4}
"""A tile of bands, and the bins that are summed up at once: neighbouring bands share few bins; not measured."""

MOST = 1 << 24
"""Samples of frames that are held at once; their spectra take as much again."""


def mel_forward(x: Tensor, *arguments: Any) -> None:
    """Find the bins that have weights; for each `MOST` samples of frames launch frames, transform and bands.

    Weights of 0 aren't multiplied: an infinite power reaches the bands near it, not all.
    """
    *settings, y = arguments
    of = Pass(*settings)
    if y.numel() == 0 or x.numel() == 0 or of.power not in (1, 2):
        y.copy_(composite.mel_forward({}, x, *settings))
        return
    kernels = triton_launch.kernels(__package__)
    signal, row_stride, time_stride, _ = signal_rows(x, x.shape[:-1])
    taps, bins, found = packed(of.window), of.n_fft // 2 + 1, y.shape[-2]
    total = y.numel() // found
    most = min(total, max(1, MOST // of.n_fft))
    frames = x.new_empty(most, of.n_fft)
    tiles, weights, extent = -(-found // SHAPE["BANDS"]), frames, frames
    if of.filters is not None:
        weights, extent = packed(of.filters), x.new_empty(tiles, 2, dtype=torch.int32)
        sizes = {name: SHAPE[name] for name in ("BANDS", "DEPTH")}
        triton_launch.launch(kernels.extents, tiles, x, weights, found, bins, extent, **sizes)
    for first in range(0, total, most):
        held = frames[: total - first]
        triton_launch.launch(
            kernels.frames, len(held), x,
            signal, row_stride, time_stride, x.shape[-1], taps, taps.shape[-1], of.n_fft, of.hop, of.origin, of.count,
            first, held, REFLECT=of.reflect, CENTRED=of.centred, PREEMPHASIS=of.preemphasis, **BLOCK,
        )  # fmt: skip
        spectra = torch.view_as_real(torch.fft.rfft(held))
        triton_launch.launch(
            kernels.bands, -(-len(held) // SHAPE["FRAMES"]) * tiles, x,
            spectra, bins, weights, extent, found, tiles, of.count, first, len(held), y,
            FILTERED=of.filters is not None, MAGNITUDES=of.power == 1, GAIN=of.gain, FLOOR=of.floor, OFFSET=of.offset,
            **SHAPE,
        )  # fmt: skip
