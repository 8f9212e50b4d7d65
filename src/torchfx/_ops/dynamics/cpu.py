"""The detectors on the CPU: csrc/dynamics."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from torchfx._ops import native
from torchfx._ops.checks import check_finite
from torchfx._ops.memory import address, coefficient_rows, packed, pass_on, raise_for, signal_rows

why_missing = native.why_missing


def ballistics_forward(x: Tensor, coefficients: Tensor, state: Tensor | None, y: Tensor, after: Tensor) -> None:
    """Run the detector."""
    _run("ballistics_forward", x, "coefficients", coefficients, state, y, after)


def dynamics_gain(key: Tensor, settings: Tensor, state: Tensor | None, gain: Tensor, after: Tensor) -> None:
    """Run level, curve and ballistics in one pass."""
    _run("dynamics_gain", key, "settings", settings, state, gain, after)


def _run(name: str, x: Tensor, given: str, values: Tensor, state: Tensor | None, y: Tensor, after: Tensor) -> None:
    if y.numel() == 0:
        pass_on(state, after)
        return
    *leading, time = y.shape
    signal, row_stride, time_stride, repeat = signal_rows(x, leading)
    rows, count, rows_repeat = coefficient_rows(values, 1, leading)
    state = None if state is None else packed(state)
    pack, run = native.call[name]
    status = run(pack(
        x.dtype is torch.float64, signal.data_ptr(), row_stride, time_stride, repeat,
        y.data_ptr(), time, y.numel() // time, time, rows.data_ptr(), count, rows_repeat,
        address(state), after.data_ptr(), torch.get_num_threads(),
    ))  # fmt: skip
    if status:
        check_finite(given, values)
        raise_for(status, name)


def sliding_max(x: Tensor, window: int, y: Tensor) -> None:
    """Run the maxima."""
    if y.numel() == 0:
        return
    signal, row_stride, time_stride, _ = signal_rows(x, x.shape[:-1])
    pack, run = native.call["sliding_max"]
    status = run(pack(
        x.dtype is torch.float64, signal.data_ptr(), row_stride, time_stride,
        y.data_ptr(), y.shape[-1], math.prod(x.shape[:-1]), y.shape[-1], window, torch.get_num_threads(),
    ))  # fmt: skip
    if status:
        raise_for(status, "sliding_max")
