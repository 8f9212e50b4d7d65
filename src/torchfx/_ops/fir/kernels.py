"""The finite impulse response as a Triton kernel: a product of matrices with the taps' Toeplitz matrix.

A program computes `ROWS` times `COLUMNS` neighbouring outputs as a matrix, row after row. For each `COLUMNS` taps the
samples that far back, as rows, are multiplied by a matrix of taps. What the response still owes when the signal ends
are further outputs, of silence: the state after.

float32 samples are multiplied as three TF32 products each, which keep float32's precision, and summed in float32.
"""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["response"]


@triton.jit(do_not_specialize=["repeat", "count", "rows", "tap_repeat", "tiles"])
def response(
    x, row_stride, time_stride, repeat, y, taps, count, rows, tap_repeat, before, after, time, tiles,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, HAS_STATE: tl.constexpr,
):  # fmt: skip
    """Compute a tile of a channel's outputs, or of its state after."""
    channel = (tl.program_id(0) // tiles).to(tl.int64)
    start = (tl.program_id(0) % tiles).to(tl.int64) * (ROWS * COLUMNS)
    x += channel // repeat * row_stride
    taps += (channel // tap_repeat) % rows * count
    row, column = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    offset = row[:, None] * COLUMNS + column[None, :]
    lag = column[None, :] - column[:, None]
    total = tl.zeros((ROWS, COLUMNS), y.dtype.element_ty)
    for back in range(0, count + COLUMNS - 1, COLUMNS):
        at = start - back  # of the tile's first sample; offsets within the tile are 32-bit numbers
        first, end = tl.maximum(-at, 0).to(tl.int32), tl.minimum(time - at, ROWS * COLUMNS).to(tl.int32)
        samples = tl.load(
            x + at * time_stride + offset * time_stride, mask=(offset >= first) & (offset < end), other=0.0
        )
        there = (lag + back >= 0) & (lag + back < count)
        weights = tl.load(taps + back + lag, mask=there, other=0.0).to(y.dtype.element_ty)
        total = tl.dot(samples, weights, total, input_precision="tf32x3", out_dtype=y.dtype.element_ty)
    at = start + offset
    owed = count - 1
    if HAS_STATE:
        total += tl.load(before + channel * owed + at, mask=at < owed, other=0.0).to(y.dtype.element_ty)
    tl.store(y + channel * time + at, total, mask=at < time)
    later = (at >= time) & (at < time + owed)
    tl.store(after + channel * owed + at - time, total.to(tl.float64), mask=later)
