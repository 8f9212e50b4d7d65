"""The network of delay lines on the CPU: csrc/delay_network."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import torch
from torch import Tensor

from torchfx._ops import native
from torchfx._ops.checks import check_finite, check_stable
from torchfx._ops.memory import Rows, address, coefficient_rows, packed, pass_on, raise_for, signal_rows

why_missing = native.why_missing


def delay_network_forward(
    x: Tensor,
    delays: Sequence[int],
    system: Tensor,
    sos: Tensor | None,
    lines: Tensor | None,
    state: Tensor | None,
    filter_first: bool,
    y: Tensor,
    lines_after: Tensor,
    after: Tensor,
) -> None:
    """Run the network."""
    if y.numel() == 0:
        pass_on(lines, lines_after)
        pass_on(state, after)
        return
    *leading, outputs, time = y.shape
    signal, row_stride, time_stride, repeat = signal_rows(x, (*leading, x.shape[-2]))
    matrices, rows, system_repeat = coefficient_rows(system, 2, leading)
    sections = Rows(after, 1, 1) if sos is None else coefficient_rows(sos, 3, leading)
    lines, state = (None if tensor is None else packed(tensor) for tensor in (lines, state))
    lengths = array("q", delays)
    pack, run = native.call["delay_network_forward"]
    status = run(pack(
        x.dtype is torch.float64,
        signal.data_ptr(), row_stride, time_stride, repeat, y.data_ptr(), time, y.numel() // (outputs * time), time,
        lengths.buffer_info()[0], len(lengths), x.shape[-2], outputs,
        matrices.data_ptr(), rows, system_repeat,
        sections.tensor.data_ptr(), after.shape[0], sections.rows, sections.repeat, filter_first,
        address(lines), lines_after.data_ptr(), address(state), after.data_ptr(), 0, 0, 0, torch.get_num_threads(),
    ))  # fmt: skip
    if status:
        check_finite("system", system)
        if sos is not None:
            check_stable(sos.flatten(-3, -2))
        raise_for(status, "delay_network_forward")
