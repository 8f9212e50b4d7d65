"""Calls like the last one: of a short block, finding out what has to run takes longer than running it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from torchfx._ops.checks import STRIDED
from torchfx._ops.memory import HUGE, empty, raise_for
from torchfx._ops.observers import function_modes_active, is_tracing, modes_active, profiler_enabled, transforms_active

__all__ = ["SHORT", "Again", "again"]

Again = Callable[[Any], "Tensor | None"]
"""Processes a signal like the last one. It does nothing and returns None where a signal is unlike, requires a gradient,
or may not go past PyTorch's dispatcher (`is_direct`)."""

SHORT = 1 << 12
"""Samples, of all channels, that one thread processes."""


def again(
    x: Tensor,
    run: Callable[[Any, int, int, int], int],
    call: Any,
    name: str,
    strided: Callable[[Tensor], Tensor] | None = None,
) -> Again:
    """Return what processes signals like this one.

    Args:
        x: the signal.
        run: (call, the input's address, the output's, threads) -> a status, for contiguous signals.
        call: what stays the same from call to call.
        name: of what the status is.
        strided: processes signals that are not contiguous; None: nothing does.
    """
    shape, dtype, is_huge, is_short = x.shape, x.dtype, x.nbytes >= HUGE, x.numel() <= SHORT
    empty_like, threads = torch.empty_like, torch.get_num_threads

    def process(x: Any) -> Tensor | None:
        # `is_direct`, written out: calling it takes as long as a filter.
        if (
            type(x) is not Tensor or x.dtype is not dtype or x.layout is not STRIDED or x.shape != shape
            or not x.is_cpu or x.is_neg() or x.requires_grad
            or modes_active() or transforms_active() or function_modes_active() or forward_ad._current_level >= 0
            or is_tracing() or profiler_enabled()
        ):  # fmt: skip
            return None
        if not x.is_contiguous():
            return None if strided is None else strided(x)
        y = empty(shape, dtype, x) if is_huge else empty_like(x)
        status = run(call, x.data_ptr(), y.data_ptr(), 1 if is_short else threads())
        if status:
            raise_for(status, name)
        return y

    return process
