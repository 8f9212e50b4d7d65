"""Noise on the CPU: csrc/noise."""

from __future__ import annotations

import torch
from torch import Tensor

from torchfx._ops import native
from torchfx._ops.memory import coefficient_rows, packed, raise_for, signal_rows
from torchfx._ops.noise.schema import DENSITIES

why_missing = native.why_missing


def noise_forward(x: Tensor, gain: Tensor, place: Tensor, key: int, density: str, rounded: bool, y: Tensor) -> None:
    """Add noise, or round after it."""
    if y.numel() == 0:
        return
    *leading, time = y.shape
    signal = signal_rows(x, leading)
    gains, places = coefficient_rows(gain, 0, leading), coefficient_rows(place, 0, leading)
    pack, run = native.call["noise_forward"]
    status = run(pack(
        x.dtype is torch.float64, signal.tensor.data_ptr(), *signal[1:], y.data_ptr(), time, y.numel() // time, time,
        gains.tensor.data_ptr(), *gains[1:], places.tensor.data_ptr(), *places[1:], key, DENSITIES.index(density),
        rounded, torch.get_num_threads(),
    ))  # fmt: skip
    if status:
        raise_for(status, "noise_forward")


def noise_magnitude(place: Tensor, time: int, key: int, found: Tensor) -> None:
    """Measure normal numbers."""
    if found.numel() == 0 or time == 0:
        found.zero_()
        return
    places = packed(place)
    pack, run = native.call["noise_magnitude"]
    status = run(pack(places.data_ptr(), found.numel(), time, key, found.data_ptr(), torch.get_num_threads()))
    if status:
        raise_for(status, "noise_magnitude")


def magnitude(x: Tensor, found: Tensor) -> None:
    """Return the root of each row's sum of squares."""
    time = x.shape[-1]
    if x.numel() == 0:
        found.zero_()
        return
    signal, row_stride, time_stride, _ = signal_rows(x, x.shape[:-1])
    pack, run = native.call["magnitude"]
    status = run(pack(
        x.dtype is torch.float64, signal.data_ptr(), row_stride, time_stride, found.numel(), time, found.data_ptr(),
        torch.get_num_threads(),
    ))  # fmt: skip
    if status:
        raise_for(status, "magnitude")
