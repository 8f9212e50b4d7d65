"""The finite impulse response on the CPU: csrc/fir."""

from __future__ import annotations

import torch
from torch import Tensor

from torchfx._ops import native
from torchfx._ops.checks import check_finite
from torchfx._ops.fir.gradient import by_state
from torchfx._ops.memory import add_up, address, coefficient_rows, packed, pass_on, raise_for, signal_rows, unsummed

why_missing = native.why_missing


def fir_forward(x: Tensor, taps: Tensor, state: Tensor | None, y: Tensor, after: Tensor) -> None:
    """Run the response."""
    if y.numel() == 0:
        pass_on(state, after)
        return
    leading, time = y.shape[:-1], y.shape[-1]
    # Most signals and taps lie in memory as they are: to ask first takes half as long.
    signal, row_stride, time_stride, repeat = x, time, 1, 1
    if x.shape != y.shape or not x.is_contiguous() or x.is_neg():
        signal, row_stride, time_stride, repeat = signal_rows(x, leading)
    weights, rows, tap_repeat = taps, 1, 1
    if taps.dim() > 1 or not taps.is_contiguous() or taps.is_neg():
        weights, rows, tap_repeat = coefficient_rows(taps, 1, leading)
    state = None if state is None else packed(state)
    pack, run = native.call["fir_forward"]
    status = run(pack(
        x.dtype is torch.float64,
        signal.data_ptr(), row_stride, time_stride, repeat, y.data_ptr(), time, y.numel() // time, time,
        weights.data_ptr(), weights.shape[-1], rows, tap_repeat, address(state), after.data_ptr(),
        torch.get_num_threads(),
    ))  # fmt: skip
    if status:
        check_finite("taps", taps)
        raise_for(status, "fir_forward")


def fir_backward(
    grad_y: Tensor,
    grad_after: Tensor | None,
    x: Tensor,
    taps: Tensor,
    need_x: bool,
    need_taps: bool,
    need_state: bool,
    grad_x: Tensor,
    grad_taps: Tensor,
    grad_state: Tensor,
) -> None:
    """Run the correlations; sums over what signal and taps were broadcast to are taken here."""
    if grad_y.numel() == 0:
        grad_x.zero_(), grad_taps.zero_()
        if need_state:
            pass_on(grad_after, grad_state)
        return
    *leading, time = grad_y.shape
    signal, row_stride, time_stride, repeat = signal_rows(x, leading)
    grad, grad_row_stride, grad_time_stride, _ = signal_rows(grad_y, leading)
    weights, rows, tap_repeat = coefficient_rows(taps, 1, leading)
    after = None if grad_after is None else packed(grad_after)
    double, channels, count = x.dtype is torch.float64, grad_y.numel() // time, weights.shape[-1]
    threads = torch.get_num_threads()
    if need_x:
        by_x = unsummed(grad_x, grad_y.shape)
        pack, run = native.call["fir_backward_x"]
        status = run(pack(
            double, grad.data_ptr(), grad_row_stride, grad_time_stride, address(after), channels, time,
            weights.data_ptr(), count, rows, tap_repeat, by_x.data_ptr(), time, 0, threads,
        ))  # fmt: skip
        if status:
            raise_for(status, "fir_backward_x")
        add_up(by_x, grad_x)
    if need_taps:
        by_row = grad_taps if rows * count == taps.numel() else grad_taps.new_empty(*leading, count)
        pack, run = native.call["fir_backward_taps"]
        status = run(pack(
            double, grad.data_ptr(), grad_row_stride, grad_time_stride, address(after),
            signal.data_ptr(), row_stride, time_stride, repeat, channels, time,
            by_row.data_ptr(), count, rows, tap_repeat, threads,
        ))  # fmt: skip
        if status:
            raise_for(status, "fir_backward_taps")
        add_up(by_row, grad_taps)
    if need_state:
        by_state(grad_y, grad_after, grad_state)
