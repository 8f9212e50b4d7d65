"""Programs: several native steps over a block in one call (csrc/torchfx_dsp.h says what they are made of)."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor

from torchfx._ops import native
from torchfx._ops.strided import as_channels

__all__ = ["KINDS", "bits", "run", "step"]

KINDS: Final = ("sos", "fir", "delay", "gain", "clamp", "add", "widen", "narrow")
"""The kinds of steps in csrc's order."""


def bits(value: float) -> int:
    """Return a double as the integer that a program has in its place."""
    integer: int = struct.unpack("q", struct.pack("d", value))[0]
    return integer


def step(kind: str, source: int, target: int, double: bool, *arguments: int) -> tuple[int, ...]:
    """Return the record of a step that reads float64, if `double`, or float32 samples."""
    return KINDS.index(kind), 5 + len(arguments), source, target, double, *arguments


def run(steps: Sequence[tuple[int, ...]], x: Tensor, y: Tensor, threshold: int) -> int:
    """Run steps over `x` into `y`, which is contiguous and has its shape and dtype; return csrc's status.

    The buffers are x, y and as many temporaries as the highest target asks for.
    """
    buffers = max(2, 1 + max(target for _, _, _, target, *_ in steps))
    program = array("q", [x.dtype is torch.float64, len(steps), buffers])
    for record in steps:
        program.extend(record)
    address, words = program.buffer_info()
    time = x.shape[-1]
    signal, channel_stride, time_stride = as_channels(x, time)
    return native.call["program_run"](
        address, words, signal.data_ptr(), channel_stride, time_stride, y.data_ptr(), time, x.numel() // time, time,
        threshold, torch.get_num_threads(),
    )  # fmt: skip
