"""The cascade on CUDA tensors: kernels.py, one launch on the current stream; the host waits for nothing."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from torchfx._ops import triton_launch
from torchfx._ops.memory import add_up, coefficient_rows, packed, pass_on, signal_rows
from torchfx._ops.sos import reference

why_missing = triton_launch.why_missing

CONTIGUOUS = torch.contiguous_format

LOG_T = {4: 5, 8: 4}
"""The logarithm of how many samples a lane holds, by their bytes: as many as registers hold."""

LOG_TOLERANCE = {4: math.log(1e-10), 8: math.log(1e-14)}
"""What a chunk may neglect of the samples before its warm-up, in the peak, by the bytes of a sample."""

PROGRAMS_PER_PROCESSOR = {4: 8, 8: 8}
"""How many warps a multiprocessor has registers for, by the bytes of a sample (`tools/gpu_cost.py`)."""


def sos_forward(x: Tensor, sos: Tensor, state: Tensor | None, threshold: int, y: Tensor, after: Tensor) -> None:
    """Run the cascade. Coefficients are not checked: reading them would wait for the device."""
    if y.numel() == 0:
        pass_on(state, after)
    else:
        _launch(x, sos, state, threshold, y, after, adjoint=False)


def sos_backward(
    grad_y: Tensor,
    grad_after: Tensor | None,
    x: Tensor,
    sos: Tensor,
    state: Tensor | None,
    checkpoints: Tensor | None,
    threshold: int,
    need_x: bool,
    need_sos: bool,
    need_state: bool,
    grad_x: Tensor,
    grad_sos: Tensor,
    grad_state: Tensor,
) -> None:
    """Run the adjoint: one launch for the signal and the state, the definition where sections want a gradient."""
    if need_sos or grad_y.numel() == 0:
        reference.sos_backward(
            grad_y, grad_after, x, sos, state, checkpoints, threshold, need_x, need_sos, need_state,
            grad_x, grad_sos, grad_state,
        )  # fmt: skip
        return
    by_x = grad_x if need_x and grad_x.shape == grad_y.shape else torch.empty_like(grad_y, memory_format=CONTIGUOUS)
    by_state = grad_state if need_state else sos.new_empty(sos.shape[-2], *grad_y.shape[:-1], 2)
    _launch(grad_y, sos, grad_after, threshold, by_x, by_state, adjoint=True)
    if need_x:
        add_up(by_x, grad_x)


def _launch(
    x: Tensor, sos: Tensor, state: Tensor | None, threshold: int, y: Tensor, after: Tensor, *, adjoint: bool
) -> None:
    from torchfx._ops.sos import kernels

    *leading, time = y.shape
    channels = y.numel() // time
    signal, row_stride, time_stride, repeat = signal_rows(x, leading)
    sections, rows, sos_repeat = coefficient_rows(sos, 2, leading)
    count = sections.shape[-2]
    before = after if state is None else packed(state)
    lanes, log_t = triton_launch.warp_size(x), LOG_T[y.element_size()]
    arguments = (
        signal, row_stride, time_stride, repeat, y, sections, count, rows, sos_repeat, before, after, channels, time,
    )  # fmt: skip
    options = {
        "LANES": lanes, "LOG_T": log_t, "SHIFTED": y.element_size() == 8, "HAS_STATE": state is not None,
        "ADJOINT": adjoint,
    }  # fmt: skip
    if time < threshold:
        triton_launch.launch(kernels.sequential, -(-channels // lanes), x, *arguments, **options)
        return
    tiles = -(-time // (lanes << log_t))
    wanted = PROGRAMS_PER_PROCESSOR[y.element_size()] * triton_launch.processors(x)
    chunk_tiles = -(-tiles // max(1, min(tiles, wanted // channels)))
    chunks = -(-tiles // chunk_tiles)
    triton_launch.launch(
        kernels.chunked, channels * chunks, x, *arguments, chunks, chunk_tiles, LOG_TOLERANCE[y.element_size()],
        sos.new_empty(rows, count, kernels.TABLE.value), N=max(8, 1 << (count - 1).bit_length()), LOG_LANES=lanes.bit_length() - 1, **options,
    )  # fmt: skip
