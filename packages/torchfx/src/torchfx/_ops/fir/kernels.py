"""The finite impulse response as Triton kernels: products of matrices with the taps' Toeplitz matrix.

`toeplitz` writes that matrix in blocks of `DEPTH` times `COLUMNS` taps. A program of `response` computes `ROWS` times
`COLUMNS` neighbouring outputs as a matrix, row after row: for each block, rows of the samples that lie that far back
are multiplied by it. What the response still owes when the signal ends are further outputs, of silence: the state
after.

Tensor cores multiply float16 numbers and keep 32 bits of the sums. A float32 sample is the sum of two of them, to 22
bits, once a power of two has brought the loudest sample of a tile near their largest; a tap likewise. Three of the four
products matter. Tensor cores cut sums off instead of rounding them, so that only a block is summed up there.

The signal's gradient is the same product with the taps in reverse order, of samples that lie `ahead`. That of the taps
is a product of two signals: `correlation`.
"""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["correlation", "response", "toeplitz"]


@triton.jit
def toeplitz(
    taps, count, blocks, weights, scale,
    SPAN: tl.constexpr, DEPTH: tl.constexpr, COLUMNS: tl.constexpr, ADJOINT: tl.constexpr,
):  # fmt: skip
    """Write a block of a row of taps; as two float16 numbers each if that is the type of `weights`.

    The adjoint's taps are in reverse order, the first one as late as the blocks reach.
    """
    HALVES: tl.constexpr = weights.dtype.element_ty == tl.float16
    row, block = tl.program_id(0) // blocks, tl.program_id(0) % blocks
    taps += row * count
    weights += tl.program_id(0) * (DEPTH * COLUMNS * (1 + HALVES))
    depth, column = tl.arange(0, DEPTH)[:, None], tl.arange(0, COLUMNS)[None, :]
    lag = column - depth - COLUMNS + DEPTH * (block + 1)
    if ADJOINT:
        lag = DEPTH * blocks - COLUMNS - lag
    values = tl.load(taps + lag, mask=(lag >= 0) & (lag < count), other=0.0)
    to = depth * COLUMNS + column
    if HALVES:
        all_taps = tl.arange(0, SPAN)
        magnitudes = tl.abs(tl.load(taps + all_taps, mask=all_taps < count, other=0.0)).to(tl.float32)
        power, inverse = power_of_two(largest_finite(magnitudes))
        values *= power
        high = values.to(tl.float16)
        tl.store(weights + to, high)
        tl.store(weights + DEPTH * COLUMNS + to, (values - high.to(tl.float64)).to(tl.float16))
        tl.store(scale + row, inverse)
    else:
        tl.store(weights + to, values)


@triton.jit
def largest_finite(magnitudes):
    """Return the largest float32 magnitude that is finite."""
    return tl.max(tl.where(magnitudes < float("inf"), magnitudes, 0.0))


@triton.jit
def power_of_two(largest):
    """Return the power of two that brings a float32 magnitude to 2^14 or more, and 1 over it."""
    exponent = tl.maximum(largest.to(tl.int32, bitcast=True) >> 23, 15)  # biased by 127
    power = ((254 + 14 - exponent) << 23).to(tl.float32, bitcast=True)
    return power, ((exponent - 14) << 23).to(tl.float32, bitcast=True)


@triton.jit
def halves(samples, power):
    """Return float32 numbers times a power of two as two float16 numbers each."""
    scaled = samples * power
    high = scaled.to(tl.float16)
    return high, (scaled - high.to(tl.float32)).to(tl.float16)


@triton.jit
def samples_at(x, start, offset, time, time_stride, SPAN: tl.constexpr, INSIDE: tl.constexpr):
    """Load samples at `offset`, below SPAN, from `start` on; 0 where they aren't INSIDE the signal."""
    x += start * time_stride + offset * time_stride
    if INSIDE:
        samples = tl.load(x)
    else:
        first, end = tl.maximum(-start, 0).to(tl.int32), tl.minimum(time - start, SPAN).to(tl.int32)
        samples = tl.load(x, mask=(offset >= first) & (offset < end), other=0.0)
    return samples


@triton.jit
def scale_of(x, earliest, start, time, time_stride, SPAN: tl.constexpr, STEP: tl.constexpr, INSIDE: tl.constexpr):
    """Return `power_of_two` of the samples from `earliest` to SPAN after `start`, of which `STEP` are read at once.

    Those from `start` on are read at once: each step is waited for.
    """
    largest = largest_finite(tl.abs(samples_at(x, start, tl.arange(0, SPAN), time, time_stride, SPAN, INSIDE)))
    for now in range(earliest, start, STEP):
        before = samples_at(x, now, tl.arange(0, STEP), time, time_stride, STEP, INSIDE)
        largest = tl.maximum(largest, largest_finite(tl.abs(before)))
    return power_of_two(largest)


@triton.jit
def products(
    x, start, time, time_stride, weights, scale, blocks,
    ROWS: tl.constexpr, DEPTH: tl.constexpr, COLUMNS: tl.constexpr, INSIDE: tl.constexpr,
):  # fmt: skip
    """Return a tile of outputs. INSIDE: all of its samples lie in the signal."""
    HALVES: tl.constexpr = weights.dtype.element_ty == tl.float16
    SPAN: tl.constexpr = ROWS * COLUMNS
    if HALVES:
        earliest = start + COLUMNS - blocks * DEPTH
        power, inverse = scale_of(x, earliest, start, time, time_stride, SPAN, SPAN // 16, INSIDE)
        inverse *= tl.load(scale)
    total = tl.zeros((ROWS, COLUMNS), x.dtype.element_ty)
    depth = tl.arange(0, DEPTH)
    offset = tl.arange(0, ROWS)[:, None] * COLUMNS + depth[None, :]
    to = depth[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    for block in range(blocks):
        at = start + COLUMNS - DEPTH * (block + 1)  # of the first sample; offsets from there are 32-bit numbers
        samples = samples_at(x, at, offset, time, time_stride, SPAN + DEPTH, INSIDE)
        if HALVES:
            high, low = halves(samples, power)
            of_block = weights + block * (2 * DEPTH * COLUMNS) + to
            taps, low_taps = tl.load(of_block), tl.load(of_block + DEPTH * COLUMNS)
            part = tl.dot(low, taps)
            part = tl.dot(high, low_taps, part)
            part = tl.dot(high, taps, part)
            total = tl.fma(part, inverse, total)
        else:
            total = tl.dot(samples, tl.load(weights + block * (DEPTH * COLUMNS) + to), total, out_dtype=tl.float64)
    return total


@triton.jit(do_not_specialize=["repeat", "owed", "blocks", "rows", "tap_repeat", "tiles"])
def response(
    x, row_stride, time_stride, repeat, length, ahead, y, weights, scale, owed, blocks, rows, tap_repeat,
    before, after, time, tiles,
    ROWS: tl.constexpr, DEPTH: tl.constexpr, COLUMNS: tl.constexpr, HAS_STATE: tl.constexpr,
):  # fmt: skip
    """Compute a tile of a channel's `time` outputs, or of what it owes then: the state after.

    The signal is `length` samples long; the latest one that counts for an output lies `ahead` of it.
    """
    HALVES: tl.constexpr = weights.dtype.element_ty == tl.float16
    channel = (tl.program_id(0) // tiles).to(tl.int64)
    start = (tl.program_id(0) % tiles).to(tl.int64) * (ROWS * COLUMNS)
    row = (channel // tap_repeat) % rows
    x += channel // repeat * row_stride
    weights += row * blocks * (DEPTH * COLUMNS * (1 + HALVES))
    first = start + ahead
    scale += row
    if (first + COLUMNS >= blocks * DEPTH) & (first + ROWS * COLUMNS <= length):
        total = products(x, first, length, time_stride, weights, scale, blocks, ROWS, DEPTH, COLUMNS, True)
    else:
        total = products(x, first, length, time_stride, weights, scale, blocks, ROWS, DEPTH, COLUMNS, False)
    offset = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    at = start + offset
    if HAS_STATE and start < owed:
        total += tl.load(before + channel * owed + at, mask=at < owed, other=0.0).to(y.dtype.element_ty)
    y += channel * time + start
    if start + ROWS * COLUMNS <= time:  # nearly all tiles
        tl.store(y + offset, total)
    else:
        tl.store(y + offset, total, mask=at < time)
        later = (at >= time) & (at < time + owed)
        tl.store(after + channel * owed + at - time, total.to(tl.float64), mask=later)


@triton.jit
def tile(x, start, length, time_stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Load neighbouring samples as a matrix, row after row; 0 beyond the signal."""
    offset = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    x += start * time_stride + offset * time_stride
    if start + ROWS * COLUMNS <= length:  # without a mask, four samples are one load
        samples = tl.load(x)
    else:
        samples = tl.load(x, mask=start + offset < length, other=0.0)
    return samples


@triton.jit(do_not_specialize=["repeat", "rows", "tap_repeat", "tiles", "row_tiles", "chunk_tiles", "chunks", "blocks"])
def correlation(
    x, row_stride, time_stride, repeat, length, g, g_row_stride, g_time_stride, g_length,
    rows, tap_repeat, tiles, row_tiles, chunk_tiles, chunks, blocks, sums,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Sum up products of x and what lies ahead of it in g, for a block of lags and a chunk of a row of taps' tiles.

    A row has the `tiles` of each channel that has its taps. Both signals are matrices of `ROWS` times `COLUMNS`
    samples. Column c of the one times column v of the other, which lies as many blocks later, holds pairs that are
    v - c apart: it goes to `sums` (rows, chunks, COLUMNS, blocks * COLUMNS).
    """
    HALVES: tl.constexpr = x.dtype.element_ty == tl.float32
    block, chunk = tl.program_id(0) % blocks, tl.program_id(0) // blocks
    row, begin = chunk // chunks, chunk % chunks * chunk_tiles
    total = tl.zeros((COLUMNS, COLUMNS), x.dtype.element_ty)
    for nth in range(begin, tl.minimum(begin + chunk_tiles, row_tiles)):
        channel = nth // tiles  # of those with these taps
        channel = (channel // tap_repeat * rows + row) * tap_repeat + channel % tap_repeat
        channel = channel.to(tl.int64)
        start = (nth % tiles).to(tl.int64) * (ROWS * COLUMNS)
        now = tile(x + channel // repeat * row_stride, start, length, time_stride, ROWS, COLUMNS)
        later = tile(g + channel * g_row_stride, start + block * COLUMNS, g_length, g_time_stride, ROWS, COLUMNS)
        if HALVES:
            power, inverse = power_of_two(largest_finite(tl.abs(now)))
            later_power, later_inverse = power_of_two(largest_finite(tl.abs(later)))
            high, low = halves(tl.trans(now), power)
            later_high, later_low = halves(later, later_power)
            part = tl.dot(low, later_high)
            part = tl.dot(high, later_low, part)
            part = tl.dot(high, later_high, part)
            total = tl.fma(part, inverse * later_inverse, total)
        else:
            total = tl.dot(tl.trans(now), later, total, out_dtype=tl.float64)
    to = tl.arange(0, COLUMNS)[:, None] * (blocks * COLUMNS) + block * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(sums + chunk.to(tl.int64) * (blocks * COLUMNS * COLUMNS) + to, total)
