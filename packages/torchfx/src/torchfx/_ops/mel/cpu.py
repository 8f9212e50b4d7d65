"""The same on the CPU: csrc/spectral, for float32; other types and sizes of transforms by PyTorch."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torchfx._ops import native
from torchfx._ops.mel import composite
from torchfx._ops.mel.schema import Pass
from torchfx._ops.memory import address, packed, raise_for, signal_rows

why_missing = native.why_missing

Settings = tuple[tuple[Any, ...], tuple[Any, ...]]
"""The arguments of `mel_forward` between the signal and `origin`, and those after `count`."""

Frames = Callable[[Tensor, Any, int, int], Tensor]
"""Returns bands of frames: of a signal, its rate (where it matters), `origin` and `count`."""


def mel_forward(x: Tensor, *arguments: Any) -> None:
    """Compute the frames of every row."""
    *settings, y = arguments
    of = Pass(*settings)
    if not is_native_pass(x, of) or y.numel() == 0:
        y.copy_(composite.mel_forward({}, x, *settings))
        return
    _run("mel_forward", (), x, of, y, y.shape[-2])


def mel_backward(grad_y: Tensor, x: Tensor, *arguments: Any) -> None:
    """Compute the gradient of every row's samples."""
    *settings, grad_x = arguments
    of = Pass(*settings)
    if not is_native_pass(x, of) or grad_y.numel() == 0:
        grad_x.copy_(composite.mel_backward({}, grad_y, x, *settings))
        return
    given = packed(grad_y)
    _run("mel_backward", (given.data_ptr(),), x, of, grad_x, grad_y.shape[-2])


def _run(name: str, first: tuple[int, ...], x: Tensor, of: Pass, result: Tensor, bands: int) -> None:
    signal, row_stride, time_stride, _ = signal_rows(x, x.shape[:-1])
    taps, weights = packed(of.window), None if of.filters is None else packed(of.filters)
    numbers = _numbers(of)
    pack, run = native.call[name]
    status = run(pack(
        *first, signal.data_ptr(), row_stride, time_stride, x.shape[-1],
        result.data_ptr(), x.numel() // x.shape[-1], of.count,
        taps.data_ptr(), taps.shape[-1], of.n_fft, of.hop, of.origin, of.reflect, address(weights), bands,
        numbers.buffer_info()[0], torch.get_num_threads(),
    ))  # fmt: skip
    if status:
        raise_for(status, name)


def mel_again(x: Tensor, settings: Settings | None) -> Frames | None:
    """Return what `mel_forward` does with contiguous signals that have the leading dimensions and the type of this one.

    Args:
        x: the signal.
        settings: the arguments before and after `origin` and `count`; None: None is returned.
    """
    if settings is None or why_missing:
        return None
    arguments: tuple[Any, ...] = (*settings[0], 0, 0, *settings[1])
    of = Pass(*arguments)
    if not is_native_pass(x, of):
        return None
    taps, weights, numbers = packed(of.window), None if of.filters is None else packed(of.filters), _numbers(of)
    leading, channels = x.shape[:-1], x.shape[:-1].numel()
    bands = of.n_fft // 2 + 1 if weights is None else weights.shape[0]
    fixed = taps.data_ptr(), taps.shape[-1], of.n_fft, of.hop
    last = of.reflect, address(weights), bands, numbers.buffer_info()[0]
    (pack, run), dtype, threads = native.call["mel_forward"], x.dtype, torch.get_num_threads
    kept = taps, weights, numbers  # as long as their addresses

    def frames(x: Tensor, rate: Any, origin: int, count: int, _: Any = kept) -> Tensor:
        time = x.shape[-1]
        y = torch.empty((*leading, bands, count), dtype=dtype)
        status = run(pack(
            x.data_ptr(), time, 1, time, y.data_ptr(), channels, count, *fixed, origin, *last, threads()
        ))  # fmt: skip
        if status:
            raise_for(status, "mel_forward")
        return y

    return frames


def _numbers(of: Pass) -> array[float]:
    return array("d", (of.power, of.preemphasis, of.centred, of.gain, of.floor, of.offset))


def is_native_pass(x: Tensor, of: Pass) -> bool:
    """Return whether csrc computes a pass."""
    return x.dtype is torch.float32 and of.power in (1, 2) and x.numel() > 0 and has_native_size(of.n_fft)


def has_native_size(n_fft: int) -> bool:
    """Return whether csrc transforms this many samples: an even number without factors but 2, 3 and 5."""
    if n_fft < 4 or n_fft % 2:
        return False
    for factor in (2, 3, 5):
        while n_fft % factor == 0:
            n_fft //= factor
    return n_fft == 1
