"""The state-space operators on the CPU: csrc/state_space."""

from __future__ import annotations

import torch
from torch import Tensor

from torchfx._ops import native
from torchfx._ops.checks import check_finite
from torchfx._ops.memory import add_up, address, coefficient_rows, packed, pass_on, raise_for, signal_rows, unsummed

why_missing = native.why_missing

TABLE = 8192  # TORCHFX_SATURATION_TABLE in csrc/torchfx_dsp.h


def state_space_forward(x: Tensor, system: Tensor, state: Tensor | None, y: Tensor, after: Tensor) -> None:
    """Run the system."""
    _run("state_space_forward", x, system, (), state, y, after)


def saturated_forward(
    x: Tensor, system: Tensor, feedback: Tensor, drive: Tensor, state: Tensor | None, y: Tensor, after: Tensor
) -> None:
    """Run the system with its saturating amplifier."""
    per_channel = tuple(packed(values.expand(y.shape[:-1])) for values in (feedback, drive))
    no_outputs, no_tables = 0, (0, 1, 1)
    more = (no_outputs, *(values.data_ptr() for values in per_channel), *no_tables)
    _run("saturated_forward", x, system, more, state, y, after)


def saturation_tables(loops: Tensor) -> Tensor:
    """Return what the saturated system looks up, (..., 8192), for feedback times the systems' last element, (...)."""
    tables = loops.new_empty(*loops.shape, TABLE)
    pack, run = native.call["saturation_tables"]
    status = run(pack(loops.data_ptr(), loops.numel(), tables.data_ptr()))
    if status:
        raise_for(status, "saturation_tables")
    return tables


def _run(
    name: str, x: Tensor, system: Tensor, more: tuple[int, ...], state: Tensor | None, y: Tensor, after: Tensor
) -> None:
    if y.numel() == 0:
        pass_on(state, after)
        return
    *leading, time = y.shape
    signal, row_stride, time_stride, repeat = signal_rows(x, leading)
    matrices, rows, system_repeat = coefficient_rows(system, 3, leading)
    state = None if state is None else packed(state)
    pack, run = native.call[name]
    status = run(pack(
        x.dtype is torch.float64,
        signal.data_ptr(), row_stride, time_stride, repeat, y.data_ptr(), time, y.numel() // time, time,
        matrices.data_ptr(), system.shape[-1] - 1, system.shape[-3], rows, system_repeat,
        *more, address(state), after.data_ptr(), torch.get_num_threads(),
    ))  # fmt: skip
    if status:
        check_finite("system", system)
        raise_for(status, name)


def state_space_backward(
    grad_y: Tensor,
    grad_after: Tensor | None,
    x: Tensor,
    system: Tensor,
    state: Tensor | None,
    need_x: bool,
    need_system: bool,
    need_state: bool,
    grad_x: Tensor,
    grad_system: Tensor,
    grad_state: Tensor,
) -> None:
    """Run the adjoint; sums over what signal and systems were broadcast to are taken here."""
    if grad_y.numel() == 0:
        grad_x.zero_(), grad_system.zero_()
        if need_state:
            pass_on(grad_after, grad_state)
        return
    *leading, time = grad_y.shape
    signal, row_stride, time_stride, repeat = signal_rows(x, leading)
    grad, grad_row_stride, grad_time_stride, _ = signal_rows(grad_y, leading)
    matrices, rows, system_repeat = coefficient_rows(system, 3, leading)
    by_x = unsummed(grad_x, grad_y.shape) if need_x else grad_x
    by_system = unsummed(grad_system, (*leading, *system.shape[-3:])) if need_system else grad_system
    state, grad_after = (None if tensor is None else packed(tensor) for tensor in (state, grad_after))
    pack, run = native.call["state_space_backward"]
    status = run(pack(
        x.dtype is torch.float64, signal.data_ptr(), row_stride, time_stride, repeat,
        grad.data_ptr(), grad_row_stride, grad_time_stride, grad_y.numel() // time, time,
        matrices.data_ptr(), system.shape[-1] - 1, system.shape[-3], rows, system_repeat,
        address(state), address(grad_after), address(by_x) if need_x else 0, time,
        address(by_system) if need_system else 0, address(grad_state) if need_state else 0, torch.get_num_threads(),
    ))  # fmt: skip
    if status:
        raise_for(status, "state_space_backward")
    add_up(by_x, grad_x)
    add_up(by_system, grad_system)
