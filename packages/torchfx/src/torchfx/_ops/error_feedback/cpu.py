"""The quantiser on the CPU: csrc/error_feedback."""

from __future__ import annotations

import torch
from torch import Tensor

from torchfx._ops import native
from torchfx._ops.checks import check_finite
from torchfx._ops.memory import address, coefficient_rows, packed, pass_on, raise_for, signal_rows

why_missing = native.why_missing


def error_feedback_forward(
    x: Tensor, dither: Tensor, taps: Tensor, errors: Tensor | None, y: Tensor, after: Tensor
) -> None:
    """Run the quantiser."""
    if y.numel() == 0:
        pass_on(errors, after)
        return
    *leading, time = y.shape
    signal, noise = signal_rows(x, leading), signal_rows(dither, leading)
    rows = coefficient_rows(taps, 1, leading)
    errors = None if errors is None else packed(errors)
    pack, run = native.call["error_feedback_forward"]
    status = run(pack(
        x.dtype is torch.float64, signal.tensor.data_ptr(), *signal[1:], noise.tensor.data_ptr(), *noise[1:],
        y.data_ptr(), time, y.numel() // time, time, rows.tensor.data_ptr(), taps.shape[-1], *rows[1:],
        address(errors), after.data_ptr(), torch.get_num_threads(),
    ))  # fmt: skip
    if status:
        check_finite("taps", taps)
        raise_for(status, "error_feedback_forward")
