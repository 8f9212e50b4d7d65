"""The same on the CPU: csrc/median."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from torchfx._ops import native
from torchfx._ops.memory import raise_for, signal_rows

why_missing = native.why_missing


def sliding_median(x: Tensor, window: int, y: Tensor) -> None:
    """Filter every row."""
    if y.numel() == 0:
        return
    signal, row_stride, time_stride, _ = signal_rows(x, x.shape[:-1])
    pack, run = native.call["sliding_median"]
    status = run(pack(
        x.dtype is torch.float64, signal.data_ptr(), row_stride, time_stride,
        y.data_ptr(), y.shape[-1], math.prod(x.shape[:-1]), y.shape[-1], window, torch.get_num_threads(),
    ))  # fmt: skip
    if status:
        raise_for(status, "sliding_median")
