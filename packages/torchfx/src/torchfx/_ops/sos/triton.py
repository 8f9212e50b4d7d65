"""The cascade on CUDA tensors: kernels.py, one launch on the current stream; the host waits for nothing."""

from __future__ import annotations

import torch
from torch import Tensor

from torchfx._ops import splitting, triton_launch
from torchfx._ops.memory import add_up, coefficient_rows, packed, pass_on, signal_rows
from torchfx._ops.sos import reference
from torchfx._ops.sos.schema import CHECKPOINT_STEPS
from torchfx._ops.triton_launch import LOG_TOLERANCE

why_missing = triton_launch.why_missing

CONTIGUOUS = torch.contiguous_format

LOG_T = {4: 5, 8: 4}
"""The logarithm of how many samples a lane holds, by their bytes: as many as registers hold. Pairs of float32 are held
like float64 samples."""

SHORT = 100
"""Samples of which fewer always run in a lane for each channel. That takes 0.15 us a sample on an H100, for up to
thousands of channels; a tile for each program takes 16 us, or 18 ns a tile where that is more."""

PROGRAMS_PER_PROCESSOR = 8
"""How many warps a multiprocessor has registers for (`tools/gpu_cost.py`)."""


def sos_forward(x: Tensor, sos: Tensor, state: Tensor | None, threshold: int | None, y: Tensor, after: Tensor) -> None:
    """Run the cascade. Coefficients are not checked: reading them would wait for the device."""
    if y.numel() == 0:
        pass_on(state, after)
    else:
        _launch(x, sos, state, threshold, y, after)


def sos_forward_recording(
    x: Tensor, sos: Tensor, state: Tensor | None, threshold: int | None, y: Tensor, after: Tensor, checkpoints: Tensor
) -> None:
    """Run the cascade and keep states for the backward pass."""
    if y.numel() == 0:
        pass_on(state, after)
    else:
        _launch(x, sos, state, 0, y, after, checkpoints=checkpoints)


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
        reference.sos_backward(
            grad_y, grad_after, x, sos, state, checkpoints, threshold, need_x, need_sos, need_state,
            grad_x, grad_sos, grad_state,
        )  # fmt: skip
        return
    *leading, time = grad_y.shape
    count = sos.shape[-2]
    by_x = grad_x if need_x and grad_x.shape == grad_y.shape else torch.empty_like(grad_y, memory_format=CONTIGUOUS)
    by_state = grad_state if need_state else sos.new_empty(count, *leading, 2)
    if not need_sos:
        _launch(grad_y, sos, grad_after, threshold, by_x, by_state, adjoint=True)
    else:
        if checkpoints is None:
            checkpoints = sos.new_empty(*leading, -(-time // CHECKPOINT_STEPS), count, 2)
            _launch(x, sos, state, 0, by_x, by_state, checkpoints=checkpoints)
        of = x, grad_sos
        _launch(grad_y, sos, grad_after, 0, by_x, by_state, adjoint=True, checkpoints=checkpoints, of=of)
    if need_x:
        add_up(by_x, grad_x)


def _launch(
    x: Tensor,
    sos: Tensor,
    state: Tensor | None,
    threshold: int | None,
    y: Tensor,
    after: Tensor,
    *,
    adjoint: bool = False,
    checkpoints: Tensor | None = None,
    of: tuple[Tensor, Tensor] | None = None,
) -> None:
    """Launch the kernel for signals of this length; with checkpoints the one that runs chunks: pass a threshold of 0.

    Args:
        x, sos, state, threshold, y, after: those of the cascade, or of its adjoint.
        adjoint: whether to run that.
        checkpoints: where the cascade keeps states, or the adjoint finds them.
        of: the cascade's signal, and where the adjoint writes the gradient of the sections.
    """
    kernels = triton_launch.kernels(__package__)
    *leading, time = y.shape
    channels = y.numel() // time
    processors, lanes = triton_launch.device_properties(x.device)
    size = y.element_size()
    pairs = size == 4 and triton_launch.float64_is_slow(x.device)
    log_t = LOG_T[8 if pairs else size]
    tile = lanes << log_t
    signal, row_stride, time_stride, repeat = signal_rows(x, leading)
    sections, rows, sos_repeat = coefficient_rows(sos, 2, leading)
    count = sections.shape[-2]
    before = after if state is None else packed(state)
    arguments = (
        signal, row_stride, time_stride, repeat, y, sections, count, rows, sos_repeat, before, after, channels, time,
    )  # fmt: skip
    options = {"LANES": lanes, "LOG_T": log_t, "SHIFTED": size == 8, "HAS_STATE": state is not None}
    tiles = -(-time // tile)
    short = SHORT if pairs else max(SHORT, channels * tiles // 8)
    if time < min(splitting.THRESHOLD if threshold is None else threshold, short):
        triton_launch.launch(kernels.sequential, -(-channels // lanes), x, *arguments, ADJOINT=adjoint, **options)
        return
    if adjoint and state is not None:
        tiles = -(-(time + 2) // tile)  # it starts after the last sample
    chunks, chunk_tiles = triton_launch.split(tiles, PROGRAMS_PER_PROCESSOR * processors // channels)
    table = sos.new_empty(rows, count, kernels.TABLE.value)
    of_chunks = *arguments, chunks, chunk_tiles, LOG_TOLERANCE[size], table
    options |= {"N": max(8, 1 << (count - 1).bit_length()), "LOG_LANES": lanes.bit_length() - 1}
    options |= {"PAIRS": pairs, "SHIFTED": pairs or size == 8}
    kept = after if checkpoints is None else packed(checkpoints)
    every = tile // CHECKPOINT_STEPS
    programs = channels * chunks
    if not adjoint:
        triton_launch.launch(
            kernels.chunked, programs, x, *of_chunks, kept, every, HAS_CHECKPOINTS=checkpoints is not None, **options
        )
    elif of is None:
        unused = signal, row_stride, time_stride, repeat, kept, every, after, after, after
        triton_launch.launch(kernels.adjoint, programs, x, *of_chunks, *unused, OF_SECTIONS=False, **options)
    else:
        filtered, grad_sos = of
        signals, products = x.new_empty(programs, count + 1, tile), sos.new_empty(programs, count, 5, lanes)
        by_chunk = sos.new_empty(*leading, chunks, count, 6)
        triton_launch.launch(
            kernels.adjoint, programs, x, *of_chunks, *signal_rows(filtered, leading), kept, every,
            signals, products, by_chunk, OF_SECTIONS=True, **options,
        )  # fmt: skip
        add_up(by_chunk.movedim(-3, 0), grad_sos)
