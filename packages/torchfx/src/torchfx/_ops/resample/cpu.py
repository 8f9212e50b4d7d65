"""Resampling on the CPU: csrc/resample."""

from __future__ import annotations

import torch
from torch import Tensor

from torchfx._ops import native
from torchfx._ops.checks import check_finite
from torchfx._ops.memory import packed, raise_for, signal_rows

why_missing = native.why_missing


def resample_forward(x: Tensor, taps: Tensor, down: int, origin: int, length: int, y: Tensor) -> None:
    """Resample every row."""
    if y.numel() == 0 or x.shape[-1] == 0:
        y.zero_()
        return
    signal, row_stride, time_stride, _ = signal_rows(x, x.shape[:-1])
    weights = packed(taps)
    pack, run = native.call["resample_forward"]
    status = run(pack(
        x.dtype is torch.float64, signal.data_ptr(), row_stride, time_stride, x.shape[-1], y.data_ptr(), length,
        y.numel() // length, length, weights.data_ptr(), *taps.shape, down, origin, torch.get_num_threads(),
    ))  # fmt: skip
    if status:
        check_finite("taps", taps)
        raise_for(status, "resample_forward")
