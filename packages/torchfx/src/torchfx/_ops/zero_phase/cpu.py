"""Forwards and backwards on the CPU: csrc/sos/zero_phase.cpp."""

from __future__ import annotations

import torch
from torch import Tensor

from torchfx._ops import native, splitting
from torchfx._ops.checks import check_stable
from torchfx._ops.memory import coefficient_rows, raise_for, signal_rows
from torchfx._ops.zero_phase.schema import EXTENSIONS

why_missing = native.why_missing


def sos_zero_phase(x: Tensor, sos: Tensor, edge: int, extension: str, y: Tensor) -> None:
    """Run both passes in one call."""
    if y.numel() == 0:
        return
    *leading, time = y.shape
    signal, rows = signal_rows(x, leading), coefficient_rows(sos, 2, leading)
    pack, run = native.call["sos_zero_phase"]
    status = run(pack(
        x.dtype is torch.float64, signal.tensor.data_ptr(), *signal[1:], y.data_ptr(), time, y.numel() // time, time,
        rows.tensor.data_ptr(), sos.shape[-2], *rows[1:], edge, EXTENSIONS.index(extension), splitting.THRESHOLD,
        torch.get_num_threads(),
    ))  # fmt: skip
    if status:
        check_stable(sos)
        raise_for(status, "sos_zero_phase")
