"""Where the chunks of a channel begin, by how long its cascade remembers: computed in the kernels themselves."""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["chunk_of", "exponents", "power_of_two"]


@triton.jit
def squared_modulus(c0, c1, c2, gap, less):
    """Return |c0 z^2 + c1 z + c2|^2 where |z| = 1 - gap and 1 - cosine = less, without cancelling near 1."""
    radius = 1 - gap
    re, im2 = -gap - radius * less, radius * radius * less * (2 - less)  # z - 1
    slope, at_one = 2 * c0 + c1, c0 + c1 + c2
    real = c0 * (re * re - im2) + slope * re + at_one
    return real * real + (2 * c0 * re + slope) * (2 * c0 * re + slope) * im2


@triton.jit
def memory(sos, count, log_tolerance, N: tl.constexpr):
    """Return after how many samples a cascade has forgotten, and the logarithm of the largest gain up to each section.

    The first is csrc/sos/decay.cpp's bound, a little wider.

    The impulse response obeys |h[n]| <= rho^n M(rho) with M(rho) the largest |H(z)| on |z| = rho. On that circle the
    numerator is below the sum of its coefficients' moduli, and |1 + a1/z + a2/z^2|^2 is a parabola in the cosine.
    """
    index = tl.arange(0, N)
    there = index < count
    row = sos + 6 * index
    a0 = tl.load(row + 3, mask=there, other=1.0)
    b0 = tl.load(row, mask=there, other=1.0) / a0
    b1, b2 = tl.load(row + 1, mask=there, other=0.0) / a0, tl.load(row + 2, mask=there, other=0.0) / a0
    a1, a2 = tl.load(row + 4, mask=there, other=0.0) / a0, tl.load(row + 5, mask=there, other=0.0) / a0
    # 1 - the radius of each section's outermost pole; mirrored, so that it is the one nearest to 1.
    c1 = -tl.abs(a1)
    slope, at_one = 2 + c1, 1 + c1 + a2
    half = slope / 2
    discriminant = half * half - at_one
    complex_gap = (1 - a2) / (1 + tl.sqrt(tl.maximum(a2, 0.0)))
    gaps = tl.where(discriminant < 0, complex_gap, at_one / (half + tl.sqrt(tl.maximum(discriminant, 0.0))))
    gap = tl.minimum(tl.min(gaps, 0), 0.1)
    # The largest gain: at constant, at Nyquist, and at the sections' poles.
    POINTS: tl.constexpr = max(1, 32 // N)  # at once, as many as keep a warp's lanes busy
    best = tl.full((POINTS, N), float("-inf"), tl.float64)
    corners = tl.minimum(tl.maximum(1 + a1 / (2 * tl.sqrt(tl.maximum(a2, 1e-300))), 0.0), 2.0)
    for first in range(-2, count, POINTS):
        point = tl.minimum(first + tl.arange(0, POINTS), count - 1)
        less = tl.where(point < 0, 2.0 * (point + 2), tl.gather(corners, tl.maximum(point, 0), 0))[:, None]
        over = squared_modulus(b0[None, :], b1[None, :], b2[None, :], 0.0, less)
        under = squared_modulus(1.0, a1[None, :], a2[None, :], 0.0, less)
        best = tl.maximum(best, 0.5 * tl.cumsum(tl.where(there[None, :], tl.log(over / under), 0.0), 1))
    best = tl.max(best, 0)
    whole = tl.max(tl.where(index == N - 1, best, float("-inf")), 0)
    # Radii between the pole and 1.
    gaps = gap * (0.5 + 0.06 * tl.arange(0, 8).to(tl.float64))[:, None]
    c1, c2, at_one, slope = c1[None, :], a2[None, :], at_one[None, :], slope[None, :]
    ahead = 2 * at_one + 4 * (1 - c2) * gaps - 2 * gaps * gaps - slope * (2 * gaps - gaps * gaps + 1 - c2)
    less = tl.where(c2 > 0, ahead / (4 * tl.maximum(c2, 1e-300) * (1 - gaps)), 0.0)
    smallest = squared_modulus(1.0, c1, c2, gaps, tl.minimum(tl.maximum(less, 0.0), 2.0))
    largest = tl.abs(b0) + tl.abs(b1) + tl.abs(b2)
    bound = tl.sum(tl.log(largest)[None, :] - 0.5 * tl.log(smallest), 1)
    radii = tl.max(gaps, 1)
    samples = tl.min((bound - tl.log(radii) - log_tolerance - whole) / radii, 0)
    forgets = (gap > 1e-7) & (samples < 1e15)  # false for NaN too
    return tl.where(forgets, samples, 1e15).to(tl.int64) + 2 * count, best


@triton.jit
def chunk_of(sos, count, log_tolerance, nth, tiles, chunk_tiles, N: tl.constexpr, TILE: tl.constexpr):
    """Return the nth chunk of a channel: the tile it runs from, the one it is kept from, the one after it; and gains.

    The gains are logarithms of the largest one up to each section, as `memory` has them. Programs that run three times
    what they keep finish sooner than fewer that run less.
    """
    forgotten, log_gain = memory(sos, count, log_tolerance, N)
    warm_up = tl.cdiv(forgotten, TILE)
    span = tl.maximum(chunk_tiles, tl.cdiv(warm_up, 2))
    span = tl.where(warm_up >= tiles, tiles, span)
    start = tl.minimum(nth * span, tiles)
    stop = tl.minimum(start + span, tiles)
    return tl.where(start < stop, tl.maximum(start - warm_up, 0), stop), start, stop, log_gain


@triton.jit
def exponents(log_gain, count, N: tl.constexpr):
    """Return of each section the power of two that its output is divided by, near the largest gain up to it.

    The last one's is 0: what leaves the cascade is as loud as it should be. Without them, a design that puts a gain of
    1e-50 into its first section would leave the range of float32. Powers of two round nothing.
    """
    index = tl.arange(0, N)
    found = tl.floor(log_gain * 1.4426950408889634 + 0.5)
    return tl.where((tl.abs(found) < 500) & (index < count - 1), found, 0.0).to(tl.int64)  # 0 for no gain and for NaN


@triton.jit
def power_of_two(exponent):
    """Return 2 to the power of a whole number between -1000 and 1000."""
    return ((exponent + 1023) << 52).to(tl.float64, bitcast=True)
