"""The finite impulse response on CUDA tensors: kernels.py, two launches on the current stream."""

from __future__ import annotations

import torch
from torch import Tensor

from torchfx._ops import triton_launch
from torchfx._ops.fir import reference
from torchfx._ops.fir.gradient import by_state
from torchfx._ops.memory import add_up, coefficient_rows, packed, pass_on, signal_rows, unsummed

__all__ = ["fir_backward", "fir_forward"]

why_missing = triton_launch.why_missing

SHAPES = {
    4: {"ROWS": 128, "DEPTH": 64, "COLUMNS": 64, "num_warps": 8, "num_stages": 1},
    8: {"ROWS": 64, "DEPTH": 32, "COLUMNS": 32, "num_warps": 4},
}
"""A tile of outputs and a block of taps, by the bytes of a sample: measured on an H100 (`tools/gpu_check.py`)."""

SUMS = {
    4: {"ROWS": 64, "COLUMNS": 128, "num_warps": 8, "num_stages": 1},
    8: {"ROWS": 32, "COLUMNS": 64, "num_warps": 8, "num_stages": 1},
}
"""A tile of samples for the gradient of taps, as large as registers hold its sums; not measured."""

SUMS_PER_PROCESSOR = 2
"""Programs that sum up, for each multiprocessor: they run in two turns."""

MOST_SUMMED = 64
"""Tiles that are summed up in float32: their rounding is 3e-7 of the sum."""

LONGEST = 4096
"""Taps beyond which a transform is faster: by the rates of tensor cores and memory, not measured."""


def fir_forward(x: Tensor, taps: Tensor, state: Tensor | None, y: Tensor, after: Tensor) -> None:
    """Run the response. Taps are not checked: reading them would wait for the device.

    A NaN or an infinite sample also reaches up to `COLUMNS` outputs before it, and `DEPTH` after those it belongs to.
    """
    if y.numel() == 0:
        pass_on(state, after)
    elif taps.shape[-1] > LONGEST:
        reference.fir_forward(x, taps, state, y, after)
    else:
        _respond(x, taps, state, y, after)


def fir_backward(
    grad_y: Tensor,
    grad_after: Tensor | None,
    x: Tensor,
    taps: Tensor,
    need_x: bool,
    need_taps: bool,
    need_state: bool,
    grad_x: Tensor,
    grad_taps: Tensor,
    grad_state: Tensor,
) -> None:
    """Run the signal's gradient, a response to the taps in reverse order, and that of the taps, a correlation."""
    if grad_y.numel() == 0 or taps.shape[-1] > LONGEST:
        reference.fir_backward(
            grad_y, grad_after, x, taps, need_x, need_taps, need_state, grad_x, grad_taps, grad_state
        )
        return
    g = grad_y if grad_after is None else torch.cat([grad_y, grad_after.to(grad_y.dtype)], dim=-1)
    if need_x:
        by_x = unsummed(grad_x, grad_y.shape)
        _respond(g, taps, None, by_x, None)
        add_up(by_x, grad_x)
    if need_taps:
        _correlate(x, taps, g, grad_taps)
    if need_state:
        by_state(grad_y, grad_after, grad_state)


def _respond(x: Tensor, taps: Tensor, state: Tensor | None, y: Tensor, after: Tensor | None) -> None:
    """Launch the response, or its adjoint: that has no state after, and may read more samples than it writes."""
    kernels = triton_launch.kernels(__package__)
    *leading, time = y.shape
    signal, row_stride, time_stride, repeat = signal_rows(x, leading)
    weights, rows, tap_repeat = coefficient_rows(taps, 1, leading)
    count, size = weights.shape[-1], y.element_size()
    shape = SHAPES[size]
    depth, columns = shape["DEPTH"], shape["COLUMNS"]
    blocks = -(-(count + columns - 1) // depth)
    ahead, owed = (depth * blocks - columns, 0) if after is None else (0, count - 1)
    halves = {4: 2, 8: 1}[size]
    matrices = taps.new_empty(rows * blocks * halves, depth, columns, dtype=torch.float16 if size == 4 else None)
    scale = taps.new_empty(rows, dtype=torch.float32)
    triton_launch.launch(
        kernels.toeplitz, rows * blocks, x, weights, count, blocks, matrices, scale,
        SPAN=1 << (count - 1).bit_length(), DEPTH=depth, COLUMNS=columns, ADJOINT=after is None, num_warps=4,
    )  # fmt: skip
    tiles = -(-(time + owed) // (shape["ROWS"] * columns))
    after = weights if after is None else after
    triton_launch.launch(
        kernels.response, y.numel() // time * tiles, x,
        signal, row_stride, time_stride, repeat, x.shape[-1], ahead, y, matrices, scale, owed, blocks, rows, tap_repeat,
        after if state is None else packed(state), after, time, tiles, HAS_STATE=state is not None, **shape,
    )  # fmt: skip


def _correlate(x: Tensor, taps: Tensor, g: Tensor, grad_taps: Tensor) -> None:
    """Write the gradient of the taps: pairs of a sample and one of g that lies ahead, summed up by their distance."""
    kernels = triton_launch.kernels(__package__)
    *leading, length = g.shape
    signal, row_stride, time_stride, repeat = signal_rows(x, leading)
    grad, g_row_stride, g_time_stride, _ = signal_rows(g, leading)
    _, rows, tap_repeat = coefficient_rows(taps, 1, leading)
    count, shape = taps.shape[-1], SUMS[g.element_size()]
    columns = shape["COLUMNS"]
    blocks = -(-(count + columns - 1) // columns)
    tiles = -(-x.shape[-1] // (shape["ROWS"] * columns))
    row_tiles = g.numel() // length // rows * tiles  # of all channels with a row of taps
    wanted = max(SUMS_PER_PROCESSOR * triton_launch.processors(g) // (rows * blocks), -(-row_tiles // MOST_SUMMED))
    chunks, chunk_tiles = triton_launch.split(row_tiles, wanted)
    sums = g.new_empty(rows, chunks, columns, blocks * columns)
    triton_launch.launch(
        kernels.correlation, rows * chunks * blocks, g,
        signal, row_stride, time_stride, repeat, x.shape[-1], grad, g_row_stride, g_time_stride, length,
        rows, tap_repeat, tiles, row_tiles, chunk_tiles, chunks, blocks, sums, **shape,
    )  # fmt: skip
    by_row = grad_taps if rows * count == taps.numel() else grad_taps.new_empty(*leading, count)
    # Entry (c, c + lag) of each chunk's matrix.
    *strides, row_of_sums, _ = sums.stride()
    by_lag = sums.as_strided((rows, chunks, columns, count), (*strides, row_of_sums + 1, 1))
    torch.sum(by_lag, (1, 2), dtype=torch.float64, out=by_row.view(rows, count))
    add_up(by_row, grad_taps)
