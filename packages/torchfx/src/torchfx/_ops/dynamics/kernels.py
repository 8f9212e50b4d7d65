"""The detectors as Triton kernels.

`ballistics` is sequential, but not all of it: while no sample changes which coefficient it takes, what comes before a
lane's samples acts on what comes after them linearly. A program is one warp and takes a tile of `LANES * 2^LOG_T`
neighbouring samples, 2^LOG_T in each lane.

- Every lane runs its samples from a guess, first what is known in front of the tile, and counts how much of that guess
  is left behind them.
- Where a lane ends elsewhere than the next one began, a scan over the lanes moves all guesses as if coefficients
  stayed: Newton's method for all guesses at once. Then the lanes run again.

After n runs the first n lanes are right in any case. Two to four runs do for most tiles: one of them the check.

A channel is cut into chunks, one for each program. y keeps at most 1 - min(rise, fall) of its past at each sample, so a
chunk starts as long before its first sample, from 0, as that takes to fall below a tolerance: programs don't talk to
each other. How long that is, the kernel itself computes, so that the host needs no coefficient. Slow ballistics make
chunks longer, up to the whole channel. What a chunk has forgotten includes a NaN.

`curve` and `product` work on each sample by itself. They are separate kernels, as chunks would compute logarithms
several times, and one after the other.

Products are fused where `tl.fma` says so and nowhere else: kernels are compiled with `enable_fp_fusion=False`.
"""

from __future__ import annotations

import triton
import triton.language as tl

from torchfx._ops.dynamics import composite
from torchfx._ops.kernels import lanes_of, tile_of, widened

__all__ = ["ballistics", "curve", "product"]

PER_OCTAVE = tl.constexpr(6.020599913279624)  # dB, 20 log10(2)
QUIETEST = tl.constexpr(composite.QUIETEST)
NEGLIGIBLE = tl.constexpr(1e-14)  # of a lane's start; a lane adds a few roundings of 1e-16


@triton.jit
def followed(columns, y, rise, fall, valid):
    """Run the first `valid` samples of each lane from y. Return outputs, the last one, and what part of y it keeps."""
    kept = tl.full(y.shape, 1.0, tl.float64)
    out = ()
    for j in tl.static_range(len(columns)):
        x = columns[j]
        c = tl.where(j < valid, tl.where(x > y, rise, fall), 0.0)
        y, kept = tl.fma(c, x - y, y), tl.fma(-c, kept, kept)
        out = out + (y,)
    return out, y, kept


@triton.jit
def composed(kept, moved, then_kept, then_moved):
    """Return kept * s + moved, and then then_kept * s + then_moved, as one such map."""
    return kept * then_kept, tl.fma(then_kept, moved, then_moved)


@triton.jit(do_not_specialize=["repeat", "rows", "coefficients_repeat", "chunks", "chunk_tiles"])
def ballistics(
    x, row_stride, time_stride, repeat, y, coefficients, rows, coefficients_repeat, before, after,
    time, chunks, chunk_tiles, log_tolerance,
    LANES: tl.constexpr, LOG_T: tl.constexpr, HAS_STATE: tl.constexpr,
):  # fmt: skip
    """Follow a chunk of a channel; the program of the last one writes the state after."""
    T: tl.constexpr = 2**LOG_T
    TILE: tl.constexpr = LANES * T
    channel = (tl.program_id(0) // chunks).to(tl.int64)
    coefficients += (channel // coefficients_repeat) % rows * 2
    rise, fall = tl.load(coefficients), tl.load(coefficients + 1)
    x += channel // repeat * row_stride
    y += channel * time

    samples = -log_tolerance / tl.minimum(rise, fall)  # (1 - c)^n < exp(-c n)
    whole = tl.cdiv(time, TILE).to(tl.int64) * TILE
    warm_up = tl.cdiv(tl.where(samples < time, samples, time).to(tl.int64), TILE) * TILE  # `time` for NaN, too
    # All programs run at once. Chunks shorter than an eighth of the warm-up would hardly end sooner.
    span = tl.maximum(chunk_tiles.to(tl.int64) * TILE, tl.cdiv(warm_up, 8 * TILE) * TILE)
    span = tl.where(warm_up >= whole, whole, span)
    start = tl.program_id(0) % chunks * span
    stop = tl.minimum(start + span, time)
    begin = tl.maximum(start - warm_up, 0)

    lane, offset = tl.arange(0, LANES), tl.arange(0, TILE)
    previous = tl.maximum(lane - 1, 0)
    carry = tl.zeros((LANES,), tl.float64)
    if HAS_STATE:
        carry += tl.load(before + channel, mask=begin == 0, other=0.0)
    left = tl.minimum(stop - begin, TILE).to(tl.int32)
    ahead = tl.load(x + begin * time_stride + offset * time_stride, mask=offset < left, other=0.0)
    for now in range(begin, stop, TILE):
        columns = widened(lanes_of(ahead, LANES, LOG_T))
        following = now + TILE
        more = tl.minimum(stop - following, TILE).to(tl.int32)
        ahead = tl.load(x + following * time_stride + offset * time_stride, mask=offset < more, other=0.0)
        out, guess, end, wrong = columns, carry, carry, 1
        while wrong > 0:
            out, end, kept = followed(columns, guess, rise, fall, left - lane * T)
            reached = tl.where(lane == 0, guess, tl.gather(end, previous, 0))
            off = reached - guess
            # A guess that is a NaN stays one.
            lacks = (guess == guess) & ~(tl.abs(off) <= NEGLIGIBLE * tl.abs(reached))
            wrong = tl.max(lacks.to(tl.int32), 0)
            _, moved = tl.associative_scan((tl.gather(kept, previous, 0), off), 0, composed)
            guess += moved
        carry = tl.gather(end, lane * 0 + (LANES - 1), 0)
        if now >= start:
            tile = tl.reshape(tile_of(out, y.dtype.element_ty, LANES, LOG_T), (TILE,))
            tl.store(y + now + offset, tile, mask=offset < left)
        left = more

    if (start < time) & (stop == time):
        tl.store(after + channel + lane, carry, mask=lane == 0)


@triton.jit(do_not_specialize=["repeat", "rows", "settings_repeat", "blocks"])
def curve(
    key, row_stride, time_stride, repeat, y, settings, rows, settings_repeat, time, blocks, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write the gain in dB that each sample's level asks for: schema.py."""
    row = (tl.program_id(0) // blocks).to(tl.int64)
    at = (tl.program_id(0) % blocks).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    settings += (row // settings_repeat) % rows * 8
    threshold, above, below = tl.load(settings), tl.load(settings + 1), tl.load(settings + 2)
    knee, lowest = tl.load(settings + 3), tl.load(settings + 4)
    x = tl.abs(tl.load(key + row // repeat * row_stride + at * time_stride, mask=at < time, other=0.0).to(tl.float64))
    over = tl.log2(tl.maximum(x, tl.full((), QUIETEST, tl.float64))) * PER_OCTAVE - threshold
    # k(o) is a parabola over the knee, and straight after it; k(-o) = k(o) - o.
    bent = tl.minimum(tl.maximum(over + knee / 2, 0.0), knee)
    k = bent * bent * tl.where(knee > 0, 0.5 / knee, 0.0) + tl.maximum(over - knee / 2, 0.0)
    gain = tl.maximum((above + below) * k - below * over, lowest) + (x - x)  # NaN where x is NaN or infinite
    tl.store(y + row * time + at, gain, mask=at < time)


@triton.jit(do_not_specialize=["repeat", "gain_repeat", "rows", "settings_repeat", "blocks"])
def product(
    x, row_stride, time_stride, repeat, y, gain, gain_stride, gain_repeat, settings, rows, settings_repeat,
    time, blocks, BLOCK: tl.constexpr,
):  # fmt: skip
    """Multiply samples by gains in dB and the makeup gain."""
    row = (tl.program_id(0) // blocks).to(tl.int64)
    at = (tl.program_id(0) % blocks).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    makeup = tl.load(settings + (row // settings_repeat) % rows * 8 + 5)
    gains = tl.load(gain + row // gain_repeat * gain_stride + at, mask=at < time, other=0.0)
    factors = tl.exp2((gains + makeup) * (1 / PER_OCTAVE))
    x = tl.load(x + row // repeat * row_stride + at * time_stride, mask=at < time, other=0.0)
    tl.store(y + row * time + at, (x.to(tl.float64) * factors).to(y.dtype.element_ty), mask=at < time)
