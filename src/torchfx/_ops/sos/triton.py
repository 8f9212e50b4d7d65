"""The cascade on CUDA tensors: kernels.py, one launch on the current stream; the host waits for nothing."""

from __future__ import annotations

import torch
from torch import Tensor

from torchfx._ops import triton_launch
from torchfx._ops.memory import add_up, coefficient_rows, packed, pass_on, signal_rows
from torchfx._ops.sos import reference
from torchfx._ops.triton_launch import LOG_TOLERANCE

why_missing = triton_launch.why_missing

CONTIGUOUS = torch.contiguous_format

LOG_T = {4: 5, 8: 4}
"""The logarithm of how many samples a lane holds, by their bytes: as many as registers hold."""

SHORT = 100
"""Samples of which fewer always run in a lane for each channel. That takes 0.15 us a sample on an H100, for up to
thousands of channels; a tile for each program takes 16 us, or 18 ns a tile where that is more."""

PROGRAMS_PER_PROCESSOR = 8
"""How many warps a multiprocessor has registers for (`tools/gpu_cost.py`)."""


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
    """Run the adjoint. Where sections want a gradient, a launch before it keeps the signals between them."""
    if grad_y.numel() == 0:
        reference.sos_backward(
            grad_y, grad_after, x, sos, state, checkpoints, threshold, need_x, need_sos, need_state,
            grad_x, grad_sos, grad_state,
        )  # fmt: skip
        return
    *leading, time = grad_y.shape
    count = sos.shape[-2]
    by_x = grad_x if need_x and grad_x.shape == grad_y.shape else torch.empty_like(grad_y, memory_format=CONTIGUOUS)
    by_state = grad_state if need_state else sos.new_empty(count, *leading, 2)
    if need_sos:
        chunks, _ = _cut(by_x)
        kept = x.new_empty(*leading, count + 1, time), sos.new_empty(*leading, chunks, count, 6)
        _launch(x, sos, state, 0, by_x, by_state, adjoint=False, kept=kept)
        _launch(grad_y, sos, grad_after, 0, by_x, by_state, adjoint=True, kept=kept)
        add_up(kept[1].movedim(-3, 0), grad_sos)
    else:
        _launch(grad_y, sos, grad_after, threshold, by_x, by_state, adjoint=True)
    if need_x:
        add_up(by_x, grad_x)


def _cut(y: Tensor) -> tuple[int, int]:
    """Return into how many chunks a channel is cut, and how many tiles each has."""
    wanted = PROGRAMS_PER_PROCESSOR * triton_launch.processors(y) * y.shape[-1] // y.numel()
    return triton_launch.split(_tiles(y), wanted)


def _tiles(y: Tensor) -> int:
    """Return how many tiles a channel has."""
    return -(-y.shape[-1] // (triton_launch.warp_size(y) << LOG_T[y.element_size()]))


def _launch(
    x: Tensor,
    sos: Tensor,
    state: Tensor | None,
    threshold: int,
    y: Tensor,
    after: Tensor,
    *,
    adjoint: bool,
    kept: tuple[Tensor, Tensor] | None = None,
) -> None:
    """Launch the kernel for signals of this length; `kept` are its `signals` and `by_chunk`, for any length."""
    kernels = triton_launch.kernels(__package__)
    *leading, time = y.shape
    channels = y.numel() // time
    processors, lanes = triton_launch.device_properties(x.device)
    size = y.element_size()
    tiles = -(-time // (lanes << LOG_T[size]))
    signal, row_stride, time_stride, repeat = signal_rows(x, leading)
    sections, rows, sos_repeat = coefficient_rows(sos, 2, leading)
    count = sections.shape[-2]
    before = after if state is None else packed(state)
    arguments = (
        signal, row_stride, time_stride, repeat, y, sections, count, rows, sos_repeat, before, after, channels, time,
    )  # fmt: skip
    options = {
        "LANES": lanes, "LOG_T": LOG_T[size], "SHIFTED": size == 8, "HAS_STATE": state is not None, "ADJOINT": adjoint,
    }  # fmt: skip
    if time < min(threshold, max(SHORT, channels * tiles // 8)):
        triton_launch.launch(kernels.sequential, -(-channels // lanes), x, *arguments, **options)
        return
    chunks, chunk_tiles = triton_launch.split(tiles, PROGRAMS_PER_PROCESSOR * processors // channels)
    table = sos.new_empty(rows, count, kernels.TABLE.value)
    triton_launch.launch(
        kernels.chunked, channels * chunks, x, *arguments, chunks, chunk_tiles, LOG_TOLERANCE[size], table,
        *((y, after) if kept is None else kept),
        N=max(8, 1 << (count - 1).bit_length()), LOG_LANES=lanes.bit_length() - 1, HAS_SIGNALS=kept is not None,
        **options,
    )  # fmt: skip
