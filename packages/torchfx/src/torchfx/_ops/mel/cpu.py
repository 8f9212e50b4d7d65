"""The same on the CPU: csrc/spectral, for float32; other types and sizes of transforms by PyTorch."""

from __future__ import annotations

from array import array
from typing import Any

import torch
from torch import Tensor

from torchfx._ops import native
from torchfx._ops.mel import composite
from torchfx._ops.memory import address, packed, raise_for, signal_rows

why_missing = native.why_missing


def mel_forward(x: Tensor, window: Tensor, filters: Tensor | None, n_fft: int, hop: int, *rest: Any) -> None:
    """Compute the frames of every row."""
    origin, count, reflect, power, *settings, y = rest
    if x.dtype is not torch.float32 or power not in (1, 2) or not has_native_size(n_fft) or y.numel() == 0:
        arguments = (origin, count, reflect, power, *settings)
        y.copy_(composite.mel_forward({}, x, window, filters, n_fft, hop, *arguments))
        return
    signal, row_stride, time_stride, _ = signal_rows(x, x.shape[:-1])
    taps, weights = packed(window), None if filters is None else packed(filters)
    numbers = array("d", (power, *settings))
    pack, run = native.call["mel_forward"]
    status = run(pack(
        signal.data_ptr(), row_stride, time_stride, x.shape[-1],
        y.data_ptr(), y.numel() // (y.shape[-2] * count), count,
        taps.data_ptr(), taps.shape[-1], n_fft, hop, origin, reflect, address(weights), y.shape[-2],
        numbers.buffer_info()[0], torch.get_num_threads(),
    ))  # fmt: skip
    if status:
        raise_for(status, "mel_forward")


def has_native_size(n_fft: int) -> bool:
    """Return whether csrc transforms this many samples: an even number without factors but 2, 3 and 5."""
    if n_fft < 4 or n_fft % 2:
        return False
    for factor in (2, 3, 5):
        while n_fft % factor == 0:
            n_fft //= factor
    return n_fft == 1
