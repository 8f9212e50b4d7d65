"""From samples to bands as Triton kernels, around the device's own Fourier transform.

`frames` writes a tile of windowed frames, `bands` reads their spectra and writes powers, weighted sums and logarithms.
The transform is left to the device: as a product with a table of cosines and sines, n_fft = 1024 with steps of 256
samples takes 8208 operations a sample, 123 ps on an H100 at its 67 TFLOP/s of float32, and three products of TF32 50 ps
at its 495. Frames and spectra, written and read once each, are 69 bytes a sample and take 21 ps at 3.35 TB/s. At
n_fft = 400 and steps of 160 it is 30 ps and 12 ps against 46 bytes and 14 ps, with tensor cores at their peak, which
matrices of 400 rows don't reach.
"""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["bands", "extents", "frames"]


@triton.jit
def samples_of(x, time_stride, start, offset, length, time, REFLECT: tl.constexpr):
    """Load samples of a frame, which are reflected at the signal's ends, or 0 beyond them."""
    at = start + offset
    if REFLECT:
        at = tl.where(at < 0, -at, at)
        at = tl.where(at >= time, 2 * (time - 1) - at, at)
    return tl.load(x + at * time_stride, mask=(offset < length) & (at >= 0) & (at < time), other=0.0)


@triton.jit(do_not_specialize=["origin", "count", "first"])
def frames(
    x, row_stride, time_stride, time, window, length, n_fft, hop, origin, count, first, windowed,
    BLOCK: tl.constexpr, REFLECT: tl.constexpr, CENTRED: tl.constexpr, PREEMPHASIS: tl.constexpr,
):  # fmt: skip
    """Write a frame of n_fft samples: without its mean, pre-emphasised, windowed, and followed by zeros."""
    frame = tl.program_id(0).to(tl.int64) + first
    x += frame // count * row_stride
    start = frame % count * hop - origin
    dtype: tl.constexpr = x.dtype.element_ty
    mean = tl.zeros((1,), dtype)
    if CENTRED:
        total = tl.zeros((BLOCK,), dtype)
        for begin in range(0, length, BLOCK):
            total += samples_of(x, time_stride, start, begin + tl.arange(0, BLOCK), length, time, REFLECT)
        mean += tl.sum(total) / length
    windowed += tl.program_id(0).to(tl.int64) * n_fft
    for begin in range(0, n_fft, BLOCK):
        offset = begin + tl.arange(0, BLOCK)
        samples = samples_of(x, time_stride, start, offset, length, time, REFLECT) - mean
        if PREEMPHASIS != 0:
            before = samples_of(x, time_stride, start, tl.maximum(offset - 1, 0), length, time, REFLECT) - mean
            samples -= tl.full((1,), PREEMPHASIS, dtype) * before
        taps = tl.load(window + offset, mask=offset < length, other=0.0)
        tl.store(windowed + offset, samples * taps.to(dtype), mask=offset < n_fft)


@triton.jit
def extents(filters, band_count, bins, extent, BANDS: tl.constexpr, DEPTH: tl.constexpr):
    """Write for `BANDS` neighbouring bands where the bins with a weight begin, and where they end."""
    band, depth = tl.program_id(0) * BANDS + tl.arange(0, BANDS), tl.arange(0, DEPTH)
    begin, end = bins, 0
    for first in range(0, bins, DEPTH):
        at = first + depth
        inside = (band < band_count)[:, None] & (at < bins)[None, :]
        weights = tl.load(filters + band[:, None] * bins + at[None, :], mask=inside, other=0.0)
        counts = tl.max((weights != 0).to(tl.int32), 0) != 0
        begin = tl.minimum(begin, tl.min(tl.where(counts, at, bins)))
        end = tl.maximum(end, tl.max(tl.where(counts, at + 1, 0)))
    tl.store(extent + 2 * tl.program_id(0), begin)
    tl.store(extent + 2 * tl.program_id(0) + 1, end)


@triton.jit
def powers(
    spectra, frame, frame_count, bins, begin, end,
    FRAMES: tl.constexpr, DEPTH: tl.constexpr, MAGNITUDES: tl.constexpr,
):  # fmt: skip
    """Return the powers of `DEPTH` bins, of which those from `end` on are 0, or their roots: (DEPTH, FRAMES)."""
    part = 2 * begin + tl.arange(0, 2 * DEPTH)  # real, imaginary
    inside = (frame < frame_count)[:, None] & (part < 2 * end)[None, :]
    values = tl.load(spectra + frame[:, None] * (2 * bins) + part[None, :], mask=inside, other=0.0)
    real, imaginary = tl.split(tl.reshape(values, (FRAMES, DEPTH, 2)))
    found = tl.trans(real * real + imaginary * imaginary)
    return tl.sqrt(found) if MAGNITUDES else found


@triton.jit(do_not_specialize=["band_tiles", "count", "first", "frame_count"])
def bands(
    spectra, bins, filters, extent, band_count, band_tiles, count, first, frame_count, y,
    FRAMES: tl.constexpr, BANDS: tl.constexpr, DEPTH: tl.constexpr, FILTERED: tl.constexpr, MAGNITUDES: tl.constexpr,
    GAIN: tl.constexpr, FLOOR: tl.constexpr, OFFSET: tl.constexpr,
):  # fmt: skip
    """Write `BANDS` bands, or bins, of `FRAMES` frames, or with a gain their logarithms."""
    dtype: tl.constexpr = y.dtype.element_ty
    tile = tl.program_id(0) % band_tiles
    frame = (tl.program_id(0) // band_tiles).to(tl.int64) * FRAMES + tl.arange(0, FRAMES)
    band = tile * BANDS + tl.arange(0, BANDS)
    if FILTERED:
        found = tl.zeros((BANDS, FRAMES), dtype)
        end = tl.load(extent + 2 * tile + 1)
        for begin in range(tl.load(extent + 2 * tile), end, DEPTH):
            power = powers(spectra, frame, frame_count, bins, begin, end, FRAMES, DEPTH, MAGNITUDES)
            at = begin + tl.arange(0, DEPTH)
            weighted = (band < band_count)[:, None] & (at < end)[None, :]
            weights = tl.load(filters + band[:, None] * bins + at[None, :], mask=weighted, other=0.0)
            found = tl.dot(weights.to(dtype), power, found, input_precision="ieee", out_dtype=dtype)
    else:
        found = powers(spectra, frame, frame_count, bins, tile * BANDS, bins, FRAMES, BANDS, MAGNITUDES)
    if GAIN != 0:
        found += tl.full((1, 1), OFFSET, dtype)
        found = tl.maximum(found, tl.full((1, 1), FLOOR, dtype), propagate_nan=tl.PropagateNan.ALL)
        found = tl.full((1, 1), GAIN, dtype) * tl.log(found)
    row, of_row = (frame + first) // count, (frame + first) % count
    to = (row[None, :] * band_count + band[:, None]) * count + of_row[None, :]
    tl.store(y + to, found, mask=(band < band_count)[:, None] & (frame < frame_count)[None, :])
