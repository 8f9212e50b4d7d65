"""The all-pole filter on the CPU: csrc/allpole."""

from __future__ import annotations

import torch
from torch import Tensor

from torchfx._ops import native
from torchfx._ops.checks import check_finite
from torchfx._ops.memory import add_up, address, coefficient_rows, packed, pass_on, raise_for, signal_rows, unsummed

why_missing = native.why_missing


def allpole_forward(x: Tensor, a: Tensor, past: Tensor | None, y: Tensor, after: Tensor) -> None:
    """Run the filter."""
    if y.numel() == 0:
        pass_on(past, after)
        return
    *leading, time = y.shape
    signal, row_stride, time_stride, repeat = signal_rows(x, leading)
    weights, rows, a_repeat = coefficient_rows(a, 2, leading)
    past = None if past is None else packed(past)
    pack, run = native.call["allpole_forward"]
    status = run(pack(
        x.dtype is torch.float64,
        signal.data_ptr(), row_stride, time_stride, repeat, y.data_ptr(), time, y.numel() // time, time,
        a.dtype is torch.float64, weights.data_ptr(), a.shape[-1], a.shape[-2] == time, rows, a_repeat,
        address(past), after.data_ptr(), torch.get_num_threads(),
    ))  # fmt: skip
    if status:
        check_finite("a", a)
        raise_for(status, "allpole_forward")


def allpole_backward(
    grad_y: Tensor,
    grad_after: Tensor | None,
    y: Tensor,
    x: Tensor,
    a: Tensor,
    past: Tensor | None,
    need_x: bool,
    need_a: bool,
    need_past: bool,
    grad_x: Tensor,
    grad_a: Tensor,
    grad_past: Tensor,
) -> None:
    """Run the adjoint; sums over what signal and coefficients were broadcast to are taken here."""
    if grad_y.numel() == 0:
        grad_x.zero_(), grad_a.zero_()
        if need_past:
            pass_on(grad_after, grad_past)
        return
    *leading, time = grad_y.shape
    grad, grad_row_stride, grad_time_stride, _ = signal_rows(grad_y, leading)
    outputs, row_stride, time_stride, _ = signal_rows(y, leading)
    weights, rows, a_repeat = coefficient_rows(a, 2, leading)
    by_x = unsummed(grad_x, grad_y.shape) if need_x else grad_x
    by_a = unsummed(grad_a, (*leading, *a.shape[-2:])) if need_a else grad_a
    past, grad_after = (None if tensor is None else packed(tensor) for tensor in (past, grad_after))
    pack, run = native.call["allpole_backward"]
    status = run(pack(
        x.dtype is torch.float64, grad.data_ptr(), grad_row_stride, grad_time_stride,
        outputs.data_ptr(), row_stride, time_stride, grad_y.numel() // time, time,
        a.dtype is torch.float64, weights.data_ptr(), a.shape[-1], a.shape[-2] == time, rows, a_repeat,
        address(past), address(grad_after), address(by_x) if need_x else 0, time, address(by_a) if need_a else 0,
        address(grad_past) if need_past else 0, torch.get_num_threads(),
    ))  # fmt: skip
    if status:
        raise_for(status, "allpole_backward")
    add_up(by_x, grad_x)
    add_up(by_a, grad_a)
