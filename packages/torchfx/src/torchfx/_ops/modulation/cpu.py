"""Gains, delays and phasers on the CPU: csrc/modulation."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from torchfx._ops import native
from torchfx._ops.checks import check_finite
from torchfx._ops.memory import coefficient_rows, packed, pass_on, raise_for, signal_rows
from torchfx._ops.modulation.schema import DELAY, PHASER

why_missing = native.why_missing


def modulated_gain_forward(x: Tensor, settings: Tensor, phase: Tensor, y: Tensor, after: Tensor) -> None:
    """Run oscillator and product in one pass."""
    if y.numel() == 0:
        pass_on(phase, after)
        return
    *leading, time = y.shape
    signal, rows, phase = signal_rows(x, leading), coefficient_rows(settings, 1, leading), packed(phase)
    pack, run = native.call["modulated_gain_forward"]
    status = run(pack(
        x.dtype is torch.float64, signal.tensor.data_ptr(), *signal[1:], y.data_ptr(), time, y.numel() // time, time,
        rows.tensor.data_ptr(), *rows[1:], phase.data_ptr(), after.data_ptr(), torch.get_num_threads(),
    ))  # fmt: skip
    _check("modulated_gain_forward", status, settings)


def modulated_delay_forward(
    x: Tensor, settings: Tensor, phase: Tensor, past: Tensor, y: Tensor, phase_after: Tensor, after: Tensor
) -> None:
    """Run oscillator, interpolation and mix in one pass."""
    if y.numel() == 0:
        pass_on(phase, phase_after)
        pass_on(past, after)
        return
    *leading, time = y.shape
    signal, rows, phase = (
        signal_rows(x, leading),
        coefficient_rows(complete(settings, DELAY), 1, leading),
        packed(phase),
    )
    past = packed(past.expand(*leading, past.shape[-1]))
    pack, run = native.call["modulated_delay_forward"]
    status = run(pack(
        x.dtype is torch.float64, signal.tensor.data_ptr(), *signal[1:], past.data_ptr(), after.data_ptr(),
        past.shape[-1], y.data_ptr(), time, y.numel() // time, time,
        rows.tensor.data_ptr(), *rows[1:], phase.data_ptr(), phase_after.data_ptr(), torch.get_num_threads(),
    ))  # fmt: skip
    _check("modulated_delay_forward", status, settings)


def phaser_forward(
    x: Tensor, settings: Tensor, phase: Tensor, state: Tensor, y: Tensor, phase_after: Tensor, after: Tensor
) -> None:
    """Run oscillator, filters and mix in one pass."""
    if y.numel() == 0:
        pass_on(phase, phase_after)
        pass_on(state, after)
        return
    *leading, time = y.shape
    signal, rows = signal_rows(x, leading), coefficient_rows(complete(settings, PHASER), 1, leading)
    phase, state = packed(phase), packed(state)
    pack, run = native.call["phaser_forward"]
    status = run(pack(
        x.dtype is torch.float64, signal.tensor.data_ptr(), *signal[1:],
        y.data_ptr(), time, y.numel() // time, time, state.shape[0],
        rows.tensor.data_ptr(), *rows[1:], phase.data_ptr(), phase_after.data_ptr(),
        state.data_ptr(), after.data_ptr(), torch.get_num_threads(),
    ))  # fmt: skip
    _check("phaser_forward", status, settings)


def complete(settings: Tensor, names: Sequence[str]) -> Tensor:
    """Return settings; a missing feedback is 0."""
    lacking = len(names) - settings.shape[-1]
    return torch.nn.functional.pad(settings, (0, 1)) if lacking else settings


def _check(name: str, status: int, settings: Tensor) -> None:
    if status:
        check_finite("settings", settings)
        raise_for(status, name)
