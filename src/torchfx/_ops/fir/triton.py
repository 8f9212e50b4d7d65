"""The finite impulse response on CUDA tensors: kernels.py, two launches on the current stream."""

from __future__ import annotations

import torch
from torch import Tensor

from torchfx._ops import triton_launch
from torchfx._ops.fir import gradient, reference
from torchfx._ops.memory import add_up, coefficient_rows, packed, pass_on, signal_rows

__all__ = ["fir_backward", "fir_forward"]

why_missing = triton_launch.why_missing

SHAPES = {
    4: {"ROWS": 128, "DEPTH": 64, "COLUMNS": 64, "num_warps": 8, "num_stages": 1},
    8: {"ROWS": 64, "DEPTH": 32, "COLUMNS": 32, "num_warps": 4},
}
"""A tile of outputs and a block of taps, by the bytes of a sample: measured on an H100 (`tools/gpu_check.py`)."""

LONGEST = 4096
"""Taps beyond which a transform is faster: by the rates of tensor cores and memory, not measured."""


def fir_forward(x: Tensor, taps: Tensor, state: Tensor | None, y: Tensor, after: Tensor) -> None:
    """Run the response. Taps are not checked: reading them would wait for the device.

    A NaN or an infinite sample also reaches up to `COLUMNS` outputs before it, and `DEPTH` after those it belongs to.
    """
    if y.numel() == 0:
        pass_on(state, after)
        return
    if taps.shape[-1] > LONGEST:
        reference.fir_forward(x, taps, state, y, after)
        return
    from torchfx._ops.fir import kernels

    *leading, time = y.shape
    signal, row_stride, time_stride, repeat = signal_rows(x, leading)
    weights, rows, tap_repeat = coefficient_rows(taps, 1, leading)
    count = weights.shape[-1]
    size = y.element_size()
    shape = SHAPES[size]
    depth, columns = shape["DEPTH"], shape["COLUMNS"]
    blocks = -(-(count + columns - 1) // depth)
    halves = {4: 2, 8: 1}[size]
    matrices = taps.new_empty(rows * blocks * halves, depth, columns, dtype=torch.float16 if size == 4 else None)
    scale = taps.new_empty(rows, dtype=torch.float32)
    triton_launch.launch(
        kernels.toeplitz, rows * blocks, x, weights, count, blocks, matrices, scale,
        SPAN=1 << (count - 1).bit_length(), DEPTH=depth, COLUMNS=columns, num_warps=4,
    )  # fmt: skip
    tiles = -(-(time + count - 1) // (shape["ROWS"] * columns))
    triton_launch.launch(
        kernels.response, y.numel() // time * tiles, x,
        signal, row_stride, time_stride, repeat, y, matrices, scale, count, blocks, rows, tap_repeat,
        after if state is None else packed(state), after, time, tiles, HAS_STATE=state is not None, **shape,
    )  # fmt: skip


def fir_backward(
    grad_y: Tensor,
    grad_after: Tensor,
    x: Tensor,
    taps: Tensor,
    need_x: bool,
    need_taps: bool,
    need_state: bool,
    grad_x: Tensor,
    grad_taps: Tensor,
    grad_state: Tensor,
) -> None:
    """Run the signal's gradient, a response to the taps in reverse order, and that of the taps, both in x's dtype."""
    if grad_y.numel() == 0:
        reference.fir_backward(
            grad_y, grad_after, x, taps, need_x, need_taps, need_state, grad_x, grad_taps, grad_state
        )
        return
    reach = taps.shape[-1] - 1
    g = torch.cat([grad_y, grad_after.to(grad_y.dtype)], dim=-1)
    if need_x:
        response = torch.empty_like(g)
        fir_forward(g, taps.flip(-1), None, response, taps.new_empty(grad_after.shape))
        add_up(response[..., reach:], grad_x)
    if need_taps:
        grad_taps.copy_(gradient.by_taps(x, taps, g))
    if need_state:
        grad_state.copy_(torch.cat([grad_y[..., :reach].double(), grad_after], dim=-1)[..., :reach])
