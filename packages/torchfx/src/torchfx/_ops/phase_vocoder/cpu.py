"""The phase vocoder on the CPU: csrc/phase_vocoder."""

from __future__ import annotations

import torch
from torch import Tensor

from torchfx._ops import native
from torchfx._ops.memory import address, packed, pass_on, raise_for, signal_rows
from torchfx._ops.phase_vocoder.schema import starts

why_missing = native.why_missing


def phase_vocoder_forward(
    x: Tensor,
    window: Tensor,
    state: Tensor | None,
    rate: float,
    hop: int,
    first: int,
    origin: int,
    count: int,
    y: Tensor,
    after: Tensor,
) -> None:
    """Stretch every row."""
    if y.numel() == 0 or count == 0 or x.shape[-1] == 0:
        y.zero_()
        pass_on(state, after)
        return
    signal, row_stride, time_stride, _ = signal_rows(x, x.shape[:-1])
    at, shape = torch.tensor(starts(window.shape[-1], rate, hop, first, origin, count)), packed(window)
    before = None if state is None else packed(state)
    pack, run = native.call["phase_vocoder_forward"]
    status = run(pack(
        x.dtype is torch.float64, signal.data_ptr(), row_stride, time_stride, x.shape[-1], y.data_ptr(),
        y.numel() // y.shape[-1], at.data_ptr(), count, shape.data_ptr(), shape.shape[-1], hop, address(before),
        after.data_ptr(), torch.get_num_threads(),
    ))  # fmt: skip
    if status:
        raise_for(status, "phase_vocoder_forward")
