"""Transfer functions on the CPU: csrc/allpole/transfer.cpp."""

from __future__ import annotations

import torch
from torch import Tensor

from torchfx._ops import native
from torchfx._ops.again import Again, again
from torchfx._ops.checks import check_finite
from torchfx._ops.memory import coefficient_rows, packed, pass_on, raise_for, signal_rows
from torchfx._ops.zero_phase.schema import EXTENSIONS

why_missing = native.why_missing

FLOAT64 = torch.float64


def lfilter_forward(x: Tensor, b: Tensor, a: Tensor, state: Tensor | None, y: Tensor, after: Tensor) -> None:
    """Run the recursion, a channel in each lane."""
    pass_on(state, after)
    if y.numel() == 0:
        return
    _run("lfilter_forward", x, b, a, y, after.data_ptr())


def lfilter_again(x: Tensor, b: Tensor, a: Tensor) -> list[Again]:
    """Return what filters signals like this one from rest, with coefficients (order + 1,); none for others."""
    if native.library is None or x.numel() == 0 or not x.is_cpu or b.dim() != 1 or a.dim() != 1:
        return []
    b, a = packed(b), packed(a)
    wide, time, order = x.dtype is FLOAT64, x.shape[-1], b.shape[0] - 1
    channels, above, below = x.numel() // time, b.data_ptr(), a.data_ptr()
    pack, run = native.call["lfilter_forward"]

    def call(_: tuple[Tensor, Tensor], source: int, target: int, threads: int) -> int:
        return run(pack(
            wide, source, time, 1, 1, target, time, channels, time, order, above, 1, 1, below, 1, 1, 0, threads
        ))  # fmt: skip

    return [again(x, call, (b, a), "lfilter_forward")]


def lfilter_zero_phase(x: Tensor, b: Tensor, a: Tensor, edge: int, extension: str, y: Tensor) -> None:
    """Run both passes in one call."""
    if y.numel() == 0:
        return
    _run("lfilter_zero_phase", x, b, a, y, edge, EXTENSIONS.index(extension))


def _run(name: str, x: Tensor, b: Tensor, a: Tensor, y: Tensor, *rest: int) -> None:
    """Call a function; most signals and coefficients lie in memory as they are, and finding that out takes as long."""
    time = y.shape[-1]
    signal, above, below = (x, time, 1, 1), (b, 1, 1), (a, 1, 1)
    if x.shape != y.shape or not x.is_contiguous() or x.is_neg():
        signal = signal_rows(x, y.shape[:-1])
    if b.dim() > 1 or not b.is_contiguous() or b.is_neg():
        above = coefficient_rows(b, 1, y.shape[:-1])
    if a.dim() > 1 or not a.is_contiguous() or a.is_neg():
        below = coefficient_rows(a, 1, y.shape[:-1])
    pack, run = native.call[name]
    status = run(pack(
        x.dtype is FLOAT64, signal[0].data_ptr(), *signal[1:], y.data_ptr(), time, y.numel() // time, time,
        b.shape[-1] - 1, above[0].data_ptr(), *above[1:], below[0].data_ptr(), *below[1:], *rest,
        torch.get_num_threads(),
    ))  # fmt: skip
    if status:
        check_finite("b", b)
        check_finite("a", a)
        raise_for(status, name)
