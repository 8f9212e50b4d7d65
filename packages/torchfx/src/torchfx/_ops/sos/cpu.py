"""The cascade on the CPU: csrc/sos."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from torchfx._ops import native, splitting
from torchfx._ops.checks import check_stable
from torchfx._ops.memory import (
    add_up,
    address,
    coefficient_rows,
    empty,
    packed,
    pass_on,
    raise_for,
    signal_rows,
    unsummed,
)

why_missing = native.why_missing

FLOAT64 = torch.float64


def sos_forward(
    x: Tensor,
    sos: Tensor,
    state: Tensor | None,
    threshold: int | None,
    y: Tensor,
    after: Tensor,
    checkpoints: Tensor | None = None,
) -> None:
    """Run the cascade, and keep states for the backward pass where there is room for them.

    Paths of live blocks are tested first; each function called takes as long as its filter.
    """
    time = y.shape[-1]
    if y.numel() == 0:
        pass_on(state, after)
        return
    if x.is_contiguous() and x.shape == y.shape:
        signal, row_stride, time_stride, repeat = x, time, 1, 1
    else:
        signal, row_stride, time_stride, repeat = signal_rows(x, y.shape[:-1])
    if sos.dim() == 2 and sos.is_contiguous() and not sos.is_neg():
        sections, rows, sos_repeat = sos, 1, 1
    else:
        sections, rows, sos_repeat = coefficient_rows(sos, 2, y.shape[:-1])
    before = 0
    if state is not None:
        state = packed(state)
        before = state.data_ptr()
    kept = () if checkpoints is None else (checkpoints.data_ptr(),)
    pack, run = native.call["sos_forward_recording" if kept else "sos_forward"]
    status = run(
        pack(
            x.dtype is FLOAT64,
            signal.data_ptr(), row_stride, time_stride, repeat, y.data_ptr(), time, y.numel() // time, time,
            sections.data_ptr(), sections.shape[-2], rows, sos_repeat, before, after.data_ptr(),
            *kept, splitting.THRESHOLD if threshold is None else threshold, torch.get_num_threads(),
        )
    )  # fmt: skip
    if status:
        check_stable(sos)
        raise_for(status, "sos_forward")


def sos_forward_each(signals: Sequence[Tensor], sos: Tensor) -> list[Tensor]:
    """Run the cascade (sections, 6) from rest on each of many signals, by one thread each, in one native call.

    Long signals are started first, so that threads end at about the same time.
    """
    results = [empty(x.shape, x.dtype, x) for x in signals]
    rows, sections = [signal_rows(x, x.shape[:-1]) for x in signals], packed(sos)
    pack, calls = native.call["sos_forward"].pack, []
    for y, row in sorted(zip(results, rows, strict=True), key=lambda pair: -pair[0].numel()):
        time = y.shape[-1]
        calls.append(
            pack(
                y.dtype is FLOAT64,
                row.tensor.data_ptr(), *row[1:], y.data_ptr(), time, y.numel() // time, time,
                sections.data_ptr(), len(sections), 1, 1, 0, 0, splitting.THRESHOLD, 1,
            )
        )  # fmt: skip
    status = native.call_each("sos_forward", calls, torch.get_num_threads())
    if status:
        check_stable(sos)
        raise_for(status, "sos_forward")
    return results


def sos_forward_recording(
    x: Tensor, sos: Tensor, state: Tensor | None, threshold: int | None, y: Tensor, after: Tensor, checkpoints: Tensor
) -> None:
    """Run the cascade and keep states for the backward pass."""
    sos_forward(x, sos, state, threshold, y, after, checkpoints)


def sos_backward(
    grad_y: Tensor,
    grad_after: Tensor | None,
    x: Tensor,
    sos: Tensor,
    state: Tensor | None,
    checkpoints: Tensor | None,
    threshold: int | None,
    need_x: bool,
    need_sos: bool,
    need_state: bool,
    grad_x: Tensor,
    grad_sos: Tensor,
    grad_state: Tensor,
) -> None:
    """Run the adjoint; sums over what signal and sections were broadcast to are taken here."""
    if grad_y.numel() == 0:
        grad_x.zero_(), grad_sos.zero_()
        if need_state:
            pass_on(grad_after, grad_state)
        return
    *leading, time = grad_y.shape
    signal, row_stride, time_stride, repeat = signal_rows(x, leading)
    grad, grad_row_stride, grad_time_stride, _ = signal_rows(grad_y, leading)
    sections, rows, sos_repeat = coefficient_rows(sos, 2, leading)
    by_x = unsummed(grad_x, grad_y.shape) if need_x else grad_x
    count = sections.shape[-2]
    by_row = grad_sos if not need_sos or rows * count * 6 == sos.numel() else grad_sos.new_empty(*leading, count, 6)
    state, grad_after, checkpoints = (
        None if tensor is None else packed(tensor) for tensor in (state, grad_after, checkpoints)
    )
    pack, run = native.call["sos_backward"]
    status = run(pack(
        x.dtype is torch.float64,
        signal.data_ptr(), row_stride, time_stride, repeat, grad.data_ptr(), grad_row_stride, grad_time_stride,
        grad_y.numel() // time, time, sections.data_ptr(), count, rows, sos_repeat,
        address(state), address(grad_after), address(checkpoints),
        address(by_x) if need_x else 0, time, address(by_row) if need_sos else 0,
        address(grad_state) if need_state else 0,
        splitting.THRESHOLD if threshold is None else threshold, torch.get_num_threads(),
    ))  # fmt: skip
    if status:
        raise_for(status, "sos_backward")
    add_up(by_x, grad_x)
    add_up(by_row, grad_sos)
