"""The cascade as Triton kernels: one launch for any number of sections.

A program is one warp. It takes a tile of `LANES * 2^LOG_T` neighbouring samples into registers, 2^LOG_T in each lane,
and runs one section after the other over it, for float64 samples in the shifted form that reference.py derives:

- every lane runs its samples from rest, which gives an output and the state that they add;
- a scan over the lanes with the powers of one matrix gives each lane the state it starts from;
- every lane adds what that state still gives to the output.

So memory is read once and written once, and what is between two sections never leaves the registers. The next tile is
read while one is computed. A program computes the sections' matrices and their powers once and keeps them in `table`,
which all programs with the same sections fill with the same numbers.

A channel is cut into chunks, one for each program. A chunk starts as long before its first sample as the filter
remembers, from rest: programs don't talk to each other. How long that is, `memory` bounds in the kernel itself, so that
the host needs no coefficient. A filter that hardly forgets makes chunks longer, up to the whole channel.

`sequential` is for many short signals: a lane is a channel, and nothing is scanned.

Products are fused where `tl.fma` says so and nowhere else: kernels are compiled with `enable_fp_fusion=False`.
"""

from __future__ import annotations

import triton
import triton.language as tl

from torchfx._ops.kernels import lanes_of, tile_of, widened

__all__ = ["TABLE", "adjoint", "chunked", "sequential"]

TABLE = tl.constexpr(32)
"""Numbers of a section in the table: those of `section`, and from 8 on the powers of its matrix, 4 for each level."""


@triton.jit
def section(sos, SHIFTED: tl.constexpr):
    """Load sections and return them as systems w' = A w + B x, y = w1 + b0 x: k, b0, m, p, g1, g0, shaped like `sos`.

    A = [[m, 1], [p, k]] and B = [g1, g0], of the shifted section.
    """
    scale = 1.0 / tl.load(sos + 3)
    b0, b1, b2 = tl.load(sos) * scale, tl.load(sos + 1) * scale, tl.load(sos + 2) * scale
    a1, a2 = tl.load(sos + 4) * scale, tl.load(sos + 5) * scale
    k = b0 * 0
    if SHIFTED:
        k = shift_of(a1, a2)
        # Products with k are exact, and so are sums of near values.
        b1, b2 = 2 * k * b0 + b1, k * (k * b0 + b1) + b2
        a1, a2 = 2 * k + a1, k * (k + a1) + a2
    return k, b0, k - a1, -a2, tl.fma(-a1, b0, b1), tl.fma(-a2, b0, b2)


@triton.jit
def shift_of(a1, a2):
    """Return 1 for poles near 1, -1 for poles near -1, otherwise 0."""
    return tl.where(1 + a1 + a2 < 0.5, 1.0, tl.where(1 - a1 + a2 < 0.5, -1.0, 0.0)).to(tl.float64)


@triton.jit
def step(x, w1, w2, k, b0, m, p, g1, g0, SHIFTED: tl.constexpr, ADJOINT: tl.constexpr):
    """Return a section's output for a sample, and its state after.

    The adjoint's step is w' = A^T w + C^T x, y = B^T w + b0 x, where C = [1, 0].
    """
    if ADJOINT:
        y = tl.fma(g1, w1, tl.fma(g0, w2, b0 * x))
        to2 = w1
        if SHIFTED:
            to2 = tl.fma(k, w2, to2)
        return y, tl.fma(m, w1, tl.fma(p, w2, x)), to2
    to2 = g0 * x
    if SHIFTED:
        to2 = tl.fma(k, w2, to2)
    return tl.fma(b0, x, w1), tl.fma(m, w1, tl.fma(g1, x, w2)), tl.fma(p, w1, to2)


@triton.jit
def decay(y, w1, w2, k, m, p, SHIFTED: tl.constexpr):
    """Return an output plus what a state gives to it without input, and the state after."""
    to2 = p * w1
    if SHIFTED:
        to2 = tl.fma(k, w2, to2)
    return y + w1, tl.fma(m, w1, w2), to2


@triton.jit
def output(columns, w1, w2, k, b0, m, p, g1, g0, SHIFTED: tl.constexpr, ADJOINT: tl.constexpr):
    """Run the lanes' samples from their states. Return output and states after."""
    out = ()
    for j in tl.static_range(len(columns)):
        y, w1, w2 = step(columns[j], w1, w2, k, b0, m, p, g1, g0, SHIFTED, ADJOINT)
        out = out + (y,)
    return out, w1, w2


@triton.jit
def from_rest(columns, k, b0, m, p, g1, g0, SHIFTED: tl.constexpr):
    """Run the lanes' samples from rest. Return output and states after."""
    x = columns[0]
    out, w1, w2 = (b0 * x,), g1 * x, g0 * x
    for j in tl.static_range(1, len(columns)):
        y, w1, w2 = step(columns[j], w1, w2, k, b0, m, p, g1, g0, SHIFTED, False)
        out = out + (y,)
    return out, w1, w2


@triton.jit
def with_decay(columns, w1, w2, k, m, p, SHIFTED: tl.constexpr):
    """Return outputs from rest plus what the lanes' states give."""
    out = ()
    for j in tl.static_range(len(columns)):
        y, w1, w2 = decay(columns[j], w1, w2, k, m, p, SHIFTED)
        out = out + (y,)
    return out


@triton.jit
def turned(columns):
    """Return columns from the last to the first."""
    found = ()
    for j in tl.static_range(len(columns)):
        found = (columns[j],) + found
    return found


@triton.jit
def ended(columns, left):
    """Return columns with zeros behind each lane's first `left` samples."""
    found = ()
    for j in tl.static_range(len(columns)):
        found = found + (tl.where(j < left, columns[j], 0.0),)
    return found


@triton.jit
def continued(columns, left, s1, s2, k, m):
    """Return turned columns with two samples behind each lane's first `left`, which bring an adjoint to a state."""
    T: tl.constexpr = len(columns)
    found = ()
    for j in tl.static_range(T):
        behind = T - 1 - j - left
        added = tl.where(behind == 1, s2, tl.where(behind == 0, s1 - (k + m) * s2, 0.0))
        found = found + (tl.where(behind < 0, columns[j], added),)
    return found


@triton.jit
def store_lanes(to, columns, LANES: tl.constexpr):
    """Store a tile's columns, one after the other."""
    for j in tl.static_range(len(columns)):
        tl.store(to + j * LANES, columns[j].to(to.dtype.element_ty))


@triton.jit
def load_lanes(stored, mask, LANES: tl.constexpr, T: tl.constexpr):
    """Load stored columns, turned."""
    found = ()
    for j in tl.static_range(T):
        found = found + (tl.load(stored + (T - 1 - j) * LANES, mask=mask, other=0.0),)
    return found


@triton.jit
def add_to(sums, values, used, known):
    """Add to sums in memory, of which some lanes' are not known yet."""
    tl.store(sums, tl.load(sums, mask=known, other=0.0) + values, mask=used)


@triton.jit
def total(sums, known, factor):
    """Return the sum of all lanes' sums in memory, times a factor."""
    return tl.sum(tl.load(sums, mask=known, other=0.0) * factor, 0)


@triton.jit
def output_and_sums(columns, entering, leaving, w1, w2, k, b0, m, p, g1, g0, SHIFTED: tl.constexpr):
    """Run the adjoint from the lanes' states. Return its output and five sums over each lane's samples.

    They are sums of products of what enters and leaves the section with the gradients at its output and its states.
    """
    out = ()
    zero = columns[0] * 0
    g_x, w1_x, w2_x, w1_y, w2_y = zero, zero, zero, zero, zero
    for j in tl.static_range(len(columns)):
        g, x, y = columns[j], entering[j].to(tl.float64), leaving[j].to(tl.float64)
        g_x = tl.fma(g, x, g_x)
        w1_x, w2_x = tl.fma(w1, x, w1_x), tl.fma(w2, x, w2_x)
        w1_y, w2_y = tl.fma(w1, y, w1_y), tl.fma(w2, y, w2_y)
        grad_x, w1, w2 = step(g, w1, w2, k, b0, m, p, g1, g0, SHIFTED, True)
        out = out + (grad_x,)
    return out, g_x, w1_x, w2_x, w1_y, w2_y


@triton.jit
def store_gradients(to, sos, g_x, w1_x, w2_x, w1_y, w2_y, SHIFTED: tl.constexpr):
    """Store the gradients of b0 b1 b2 a0 a1 a2 by the sums of `output_and_sums`.

    They go back through the shifted form and the division by a0.
    """
    k, _, m, p, _, _ = section(sos, SHIFTED)
    scale = 1.0 / tl.load(sos + 3)
    by_b2, by_a2 = w2_x * scale, -w2_y * scale
    by_b1, by_a1 = (w1_x + k * w2_x) * scale, -(w1_y + k * w2_y) * scale
    by_b0 = (g_x + (k + m) * w1_x + (k * k + p) * w2_x) * scale
    by_a0 = tl.load(sos) * by_b0 + tl.load(sos + 1) * by_b1 + tl.load(sos + 2) * by_b2
    by_a0 = -(by_a0 + tl.load(sos + 4) * by_a1 + tl.load(sos + 5) * by_a2) * scale
    tl.store(to, by_b0)
    tl.store(to + 1, by_b1)
    tl.store(to + 2, by_b2)
    tl.store(to + 3, by_a0)
    tl.store(to + 4, by_a1)
    tl.store(to + 5, by_a2)


@triton.jit
def state_after(columns, w1, w2, valid, k, b0, m, p, g1, g0, SHIFTED: tl.constexpr, ADJOINT: tl.constexpr):
    """Return the lanes' states after their first `valid` samples."""
    for j in tl.static_range(len(columns)):
        _, to1, to2 = step(columns[j], w1, w2, k, b0, m, p, g1, g0, SHIFTED, ADJOINT)
        w1, w2 = tl.where(j < valid, to1, w1), tl.where(j < valid, to2, w2)
    return w1, w2


@triton.jit
def decayed(w1, w2, valid, k, m, p, T: tl.constexpr, SHIFTED: tl.constexpr):
    """Return what states are after `valid` samples, at most T, without input."""
    for j in tl.static_range(T):
        _, to1, to2 = decay(0.0, w1, w2, k, m, p, SHIFTED)
        w1, w2 = tl.where(j < valid, to1, w1), tl.where(j < valid, to2, w2)
    return w1, w2


@triton.jit
def squared(m11, m12, m21, m22):
    """Return a matrix times itself."""
    cross, trace = m12 * m21, m11 + m22
    return tl.fma(m11, m11, cross), m12 * trace, m21 * trace, tl.fma(m22, m22, cross)


@triton.jit
def tabulate(table, sos, LOG_LANES: tl.constexpr, LOG_T: tl.constexpr, SHIFTED: tl.constexpr):
    """Write sections, and the powers of their matrices that carry a state over 1, 2, 4, ... lanes' samples."""
    k, b0, m, p, g1, g0 = section(sos, SHIFTED)
    tl.store(table, k)
    tl.store(table + 1, b0)
    tl.store(table + 2, m)
    tl.store(table + 3, p)
    tl.store(table + 4, g1)
    tl.store(table + 5, g0)
    m11, m12, m21, m22 = m, k * 0 + 1, p, k
    for level in tl.static_range(LOG_T + LOG_LANES):
        if level >= LOG_T:
            power = table + 8 + 4 * (level - LOG_T)
            tl.store(power, m11)
            tl.store(power + 1, m12)
            tl.store(power + 2, m21)
            tl.store(power + 3, m22)
        m11, m12, m21, m22 = squared(m11, m12, m21, m22)


@triton.jit
def tabulated(table):
    """Return what `section` returned."""
    return (
        tl.load(table), tl.load(table + 1), tl.load(table + 2), tl.load(table + 3), tl.load(table + 4),
        tl.load(table + 5),
    )  # fmt: skip


@triton.jit
def gathered(values, there, LANES: tl.constexpr, LOG_LANES: tl.constexpr):
    """Return what lies at the places `there` of each 2^LOG_LANES lanes: of one warp, so that they only exchange."""
    shape: tl.constexpr = (LANES >> LOG_LANES, 2**LOG_LANES)
    return tl.reshape(tl.gather(tl.reshape(values, shape), tl.reshape(there, shape), 1), (LANES,))


@triton.jit
def carried(
    w1, w2, before1, before2, table, LANES: tl.constexpr, LOG_LANES: tl.constexpr, ADJOINT: tl.constexpr
):  # fmt: skip
    """Return the states the lanes start from and end with: the first starts from (before1, before2).

    w1, w2 are what the lanes' samples add, `table` is the section's. Each 2^LOG_LANES lanes are a channel. The adjoint
    starts in the last of them.
    """
    lane = tl.arange(0, LANES) % 2**LOG_LANES
    end: tl.constexpr = 2**LOG_LANES - 1
    if ADJOINT:
        lane = end - lane
    first = lane == 0
    for level in tl.static_range(LOG_LANES):
        power = table + 8 + 4 * level
        m11, m12, m21, m22 = tl.load(power), tl.load(power + 1), tl.load(power + 2), tl.load(power + 3)
        if ADJOINT:
            m12, m21 = m21, m12
        if level == 0:
            w1 = tl.where(first, tl.fma(m11, before1, tl.fma(m12, before2, w1)), w1)
            w2 = tl.where(first, tl.fma(m21, before1, tl.fma(m22, before2, w2)), w2)
        source = lane - 2**level
        there = tl.maximum(source, 0)
        if ADJOINT:
            there = end - there
        v1, v2 = gathered(w1, there, LANES, LOG_LANES), gathered(w2, there, LANES, LOG_LANES)
        w1 = tl.where(source >= 0, tl.fma(m11, v1, tl.fma(m12, v2, w1)), w1)
        w2 = tl.where(source >= 0, tl.fma(m21, v1, tl.fma(m22, v2, w2)), w2)
    there = tl.maximum(lane - 1, 0)
    if ADJOINT:
        there = end - there
    start1 = tl.where(first, before1, gathered(w1, there, LANES, LOG_LANES))
    start2 = tl.where(first, before2, gathered(w2, there, LANES, LOG_LANES))
    return start1, start2, w1, w2


@triton.jit
def through(
    columns, before1, before2, valid, incomplete, table,
    LANES: tl.constexpr, LOG_LANES: tl.constexpr, SHIFTED: tl.constexpr,
):  # fmt: skip
    """Run a section over a tile. Return output, and the lanes' states after their first `valid` samples.

    All samples are valid where the tile isn't `incomplete`. The rest is as in `carried`.
    """
    T: tl.constexpr = len(columns)
    k, b0, m, p, g1, g0 = tabulated(table)
    part1, part2 = tl.zeros((LANES,), tl.float64), tl.zeros((LANES,), tl.float64)
    if incomplete:
        part1, part2 = state_after(columns, part1, part2, valid, k, b0, m, p, g1, g0, SHIFTED, False)
    columns, end1, end2 = from_rest(columns, k, b0, m, p, g1, g0, SHIFTED)
    start1, start2, end1, end2 = carried(end1, end2, before1, before2, table, LANES, LOG_LANES, False)
    if incomplete:
        end1, end2 = decayed(start1, start2, valid, k, m, p, T, SHIFTED)
        end1, end2 = end1 + part1, end2 + part2
    return with_decay(columns, start1, start2, k, m, p, SHIFTED), end1, end2


@triton.jit
def scaled(
    columns, before1, before2, factor, table, LANES: tl.constexpr, LOG_LANES: tl.constexpr, SHIFTED: tl.constexpr
):  # fmt: skip
    """Run a section over a tile, times a factor, from a state that has it already. Return output."""
    k, b0, m, p, g1, g0 = tabulated(table)
    columns, end1, end2 = from_rest(columns, k, b0 * factor, m, p, g1 * factor, g0 * factor, SHIFTED)
    start1, start2, _, _ = carried(end1, end2, before1, before2, table, LANES, LOG_LANES, False)
    return with_decay(columns, start1, start2, k, m, p, SHIFTED)


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
    """Return the nth chunk of a channel: the tile it runs from, the one it is kept from, the one behind it; and gains.

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


@triton.jit(
    do_not_specialize=["repeat", "count", "rows", "sos_repeat", "channels", "chunks", "chunk_tiles", "every"]
)  # fmt: skip
def chunked(
    x, row_stride, time_stride, repeat, y, sos, count, rows, sos_repeat, before, after,
    channels, time, chunks, chunk_tiles, log_tolerance, table, checkpoints, every,
    N: tl.constexpr, LANES: tl.constexpr, LOG_LANES: tl.constexpr, LOG_T: tl.constexpr,
    SHIFTED: tl.constexpr, HAS_STATE: tl.constexpr, HAS_CHECKPOINTS: tl.constexpr,
):  # fmt: skip
    """Run a chunk of a channel through the cascade; the program of the last one writes the state after.

    If HAS_CHECKPOINTS, the shifted states before tile n of a channel go to row n * `every` of its `checkpoints`
    (channels, steps, count, 2).
    """
    T: tl.constexpr = 2**LOG_T
    TILE: tl.constexpr = LANES * T
    channel = (tl.program_id(0) // chunks).to(tl.int64)
    row = (channel // sos_repeat) % rows * count
    sos += 6 * row
    table += TABLE * row
    x += channel // repeat * row_stride
    y += channel * time

    tiles = tl.cdiv(time, TILE).to(tl.int64)
    begin, start, stop, _ = chunk_of(sos, count, log_tolerance, tl.program_id(0) % chunks, tiles, chunk_tiles, N, TILE)
    index = tl.arange(0, N)
    lane = tl.arange(0, LANES)
    offset = tl.arange(0, TILE)
    there = index < count
    state = (index * channels + channel) * 2
    shift = tl.zeros((N,), tl.float64)
    if SHIFTED:
        a0 = tl.load(sos + 6 * index + 3, mask=there, other=1.0)
        a1, a2 = tl.load(sos + 6 * index + 4, mask=there), tl.load(sos + 6 * index + 5, mask=there)
        shift = shift_of(a1 / a0, a2 / a0)
    carry1, carry2 = tl.zeros((N,), tl.float64), tl.zeros((N,), tl.float64)
    if HAS_STATE:
        given = index < tl.where(begin == 0, count, 0)
        carry1 = tl.load(before + state, mask=given, other=0.0)
        carry2 = tl.load(before + state + 1, mask=given, other=0.0) + shift * carry1
    if HAS_CHECKPOINTS:
        checkpoints += channel * (tl.cdiv(time, TILE // every) * count * 2)

    each = tl.minimum(index, count - 1)
    tabulate(table + TABLE * each, sos + 6 * each, LOG_LANES, LOG_T, SHIFTED)
    tl.debug_barrier()
    now = begin * TILE
    left = tl.minimum(time - now, TILE).to(tl.int32)
    ahead = tl.load(x + now * time_stride + offset * time_stride, mask=offset < left, other=0.0)
    for tile in range(begin, stop):
        now = tile * TILE
        left = tl.minimum(time - now, TILE).to(tl.int32)
        columns = widened(lanes_of(ahead, LANES, LOG_T))
        following = now + TILE
        more = tl.minimum(time - following, TILE).to(tl.int32)
        ahead = tl.load(x + following * time_stride + offset * time_stride, mask=offset < more, other=0.0)
        if HAS_CHECKPOINTS:
            kept = checkpoints + (tile * every * count + index) * 2
            own = index < tl.where(tile < start, 0, count)
            tl.store(kept, carry1, mask=own)
            tl.store(kept + 1, carry2, mask=own)
        last = index * 0 + (left - 1) // T
        for i in range(count):
            at = lane * 0 + i
            columns, end1, end2 = through(
                columns, tl.gather(carry1, at, 0), tl.gather(carry2, at, 0), left - lane * T, left < TILE,
                table + TABLE * i, LANES, LOG_LANES, SHIFTED,
            )  # fmt: skip
            carry1 = tl.where(index == i, tl.gather(end1, last, 0), carry1)
            carry2 = tl.where(index == i, tl.gather(end2, last, 0), carry2)
        result = tl.reshape(tile_of(columns, y.dtype.element_ty, LANES, LOG_T), (TILE,))
        tl.store(y + now + offset, result, mask=offset < tl.where(tile < start, 0, left))

    if (start < stop) & (stop == tiles):
        tl.store(after + state, carry1, mask=there)
        tl.store(after + state + 1, carry2 - shift * carry1, mask=there)


@triton.jit(
    do_not_specialize=[
        "g_repeat", "repeat", "count", "rows", "sos_repeat", "channels", "chunks", "chunk_tiles", "every",
    ]
)  # fmt: skip
def adjoint(
    g, g_row_stride, g_time_stride, g_repeat, y, sos, count, rows, sos_repeat, before, after,
    channels, time, chunks, chunk_tiles, log_tolerance, table,
    x, row_stride, time_stride, repeat, checkpoints, every, signals, products, by_chunk,
    N: tl.constexpr, LANES: tl.constexpr, LOG_LANES: tl.constexpr, LOG_T: tl.constexpr,
    SHIFTED: tl.constexpr, HAS_STATE: tl.constexpr, OF_SECTIONS: tl.constexpr,
):  # fmt: skip
    """Run a chunk of a channel's gradient g through the adjoint: sections, tiles and samples, all from the last on.

    The adjoint starts from the gradient of the state after, `before`, in the two samples behind the last one.

    If OF_SECTIONS, the gradients of the sections are summed up. A tile of x runs through the cascade once more, from
    its checkpoint; what enters each section, and the output, go to the program's `signals` (count + 1, TILE), from
    where the adjoint's lanes read them again. They are divided by the largest gain so far: a design may put a gain of
    1e-50 into its first section. Each lane sums up its own in `products` (programs, count, 5, LANES); what the chunk
    adds to the gradients goes to `by_chunk` (programs, count, 6).
    """
    T: tl.constexpr = 2**LOG_T
    TILE: tl.constexpr = LANES * T
    program = tl.program_id(0).to(tl.int64)
    channel = program // chunks
    row = (channel // sos_repeat) % rows * count
    sos += 6 * row
    table += TABLE * row
    g += channel // g_repeat * g_row_stride
    y += channel * time
    tiles = tl.cdiv(time, TILE).to(tl.int64)
    if HAS_STATE:
        tiles = tl.cdiv(time + 2, TILE).to(tl.int64)
    begin, start, stop, log_gain = chunk_of(
        sos, count, log_tolerance, tl.program_id(0) % chunks, tiles, chunk_tiles, N, TILE
    )
    index = tl.arange(0, N)
    lane = tl.arange(0, LANES)
    offset = tl.arange(0, TILE)
    carry1, carry2 = tl.zeros((N,), tl.float64), tl.zeros((N,), tl.float64)
    if OF_SECTIONS:
        x += channel // repeat * row_stride
        checkpoints += channel * (tl.cdiv(time, TILE // every) * count * 2)
        signals += program * (count + 1) * TILE + lane
        products += program * count * 5 * LANES + lane
        gain = tl.exp(tl.minimum(tl.maximum(log_gain, -600.0), 600.0))
        gain_before = tl.where(index > 0, tl.gather(gain, tl.maximum(index - 1, 0), 0), 1.0)
        scales = 1 / gain
        factors = gain_before * scales

    each = tl.minimum(index, count - 1)
    tabulate(table + TABLE * each, sos + 6 * each, LOG_LANES, LOG_T, SHIFTED)
    tl.debug_barrier()
    for nth in range(begin, stop):
        tile = tiles - 1 - nth
        first = tile * TILE
        left = tl.minimum(time - first, TILE).to(tl.int32)  # 0 or -1: the tile holds nothing but the state
        own = tl.where(nth < start, 0, left)
        if OF_SECTIONS:
            if own > 0:
                now = tl.load(x + first * time_stride + offset * time_stride, mask=offset < left, other=0.0)
                columns = widened(lanes_of(now, LANES, LOG_T))
                kept = checkpoints + tile * every * count * 2
                for i in range(count):
                    store_lanes(signals + i * TILE, columns, LANES)
                    at = lane * 0 + i
                    scale = tl.gather(scales, at, 0)
                    columns = scaled(
                        columns, tl.load(kept + 2 * i) * scale, tl.load(kept + 2 * i + 1) * scale,
                        tl.gather(factors, at, 0), table + TABLE * i, LANES, LOG_LANES, SHIFTED,
                    )  # fmt: skip
                    if HAS_STATE:
                        if left < TILE:
                            columns = ended(columns, left - lane * T)
                store_lanes(signals + count * TILE, columns, LANES)
                tl.debug_barrier()
            used = lane < tl.where(own > 0, LANES, 0)
            known = lane < tl.where((nth > start) & (first + TILE < time), LANES, 0)
            leaving = load_lanes(signals + count * TILE, used, LANES, T)
        ahead = tl.load(g + first * g_time_stride + offset * g_time_stride, mask=offset < left, other=0.0)
        columns = turned(widened(lanes_of(ahead, LANES, LOG_T)))
        for last in range(count):
            i = count - 1 - last
            this = table + TABLE * i
            k, b0, m, p, g1, g0 = tabulated(this)
            if HAS_STATE:
                if left < TILE:
                    given = before + (i * channels + channel) * 2
                    columns = continued(columns, left - lane * T, tl.load(given), tl.load(given + 1), k, m)
            zero = tl.zeros((LANES,), tl.float64)
            at = lane * 0 + i
            _, end1, end2 = output(columns, zero, zero, k, b0, m, p, g1, g0, SHIFTED, True)
            start1, start2, end1, end2 = carried(
                end1, end2, tl.gather(carry1, at, 0), tl.gather(carry2, at, 0), this, LANES, LOG_LANES, True
            )
            if OF_SECTIONS:
                entering = load_lanes(signals + i * TILE, used, LANES, T)
                columns, g_x, w1_x, w2_x, w1_y, w2_y = output_and_sums(
                    columns, entering, leaving, start1, start2, k, b0, m, p, g1, g0, SHIFTED
                )
                leaving = entering
                so_far = products + i * 5 * LANES
                add_to(so_far, g_x, used, known)
                add_to(so_far + LANES, w1_x, used, known)
                add_to(so_far + 2 * LANES, w2_x, used, known)
                add_to(so_far + 3 * LANES, w1_y, used, known)
                add_to(so_far + 4 * LANES, w2_y, used, known)
            else:
                columns, _, _ = output(columns, start1, start2, k, b0, m, p, g1, g0, SHIFTED, True)
            carry1 = tl.where(index == i, tl.gather(end1, index * 0, 0), carry1)
            carry2 = tl.where(index == i, tl.gather(end2, index * 0, 0), carry2)
        result = tl.reshape(tile_of(turned(columns), y.dtype.element_ty, LANES, LOG_T), (TILE,))
        tl.store(y + first + offset, result, mask=offset < own)
        if OF_SECTIONS:
            tl.debug_barrier()

    if OF_SECTIONS:
        known = lane < tl.where((start < stop) & ((tiles - stop) * TILE < time), LANES, 0)
        for i in range(count):
            so_far = products + i * 5 * LANES
            at = lane * 0 + i
            by_x, by_y = tl.gather(gain_before, at, 0), tl.gather(gain, at, 0)
            store_gradients(
                by_chunk + (program * count + i) * 6, sos + 6 * i,
                total(so_far, known, by_x), total(so_far + LANES, known, by_x), total(so_far + 2 * LANES, known, by_x),
                total(so_far + 3 * LANES, known, by_y), total(so_far + 4 * LANES, known, by_y), SHIFTED,
            )  # fmt: skip
    if (start < stop) & (stop == tiles):
        k = tl.load(table + TABLE * each)
        state = (index * channels + channel) * 2
        tl.store(after + state, carry1 + k * carry2, mask=index < count)
        tl.store(after + state + 1, carry2, mask=index < count)


@triton.jit(do_not_specialize=["repeat", "count", "rows", "sos_repeat", "channels"])
def sequential(
    x, row_stride, time_stride, repeat, y, sos, count, rows, sos_repeat, before, after, channels, time,
    LANES: tl.constexpr, LOG_T: tl.constexpr, SHIFTED: tl.constexpr, HAS_STATE: tl.constexpr, ADJOINT: tl.constexpr,
):  # fmt: skip
    """Run whole channels, one in each lane. The state lies in `after` between two tiles, shifted."""
    T: tl.constexpr = 2**LOG_T
    channel = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)
    there = channel < channels
    channel = tl.minimum(channel, channels - 1)
    sample = tl.arange(0, T)
    sos += (channel // sos_repeat) % rows * count * 6
    forwards = 1
    x += channel // repeat * row_stride
    y += channel * time
    if ADJOINT:
        x += (time - 1) * time_stride
        y += time - 1
        forwards = -1
        time_stride = -time_stride
    x = x[:, None] + (sample * time_stride)[None, :]
    y = y[:, None] + (sample * forwards)[None, :]
    for now in range(0, time, T):
        left = tl.minimum(time - now, T).to(tl.int32)
        mask = there[:, None] & (sample < left)[None, :]
        columns = widened(lanes_of(tl.load(x + now * time_stride, mask=mask, other=0.0), LANES, LOG_T))
        for nth in range(count):
            i = nth
            if ADJOINT:
                i = count - 1 - nth
            k, b0, m, p, g1, g0 = section(sos + 6 * i, SHIFTED)
            state = (i * channels + channel) * 2
            source = tl.where(now > 0, after + state, before + state)
            known = channel < tl.where((now > 0) | HAS_STATE, channels, 0)
            w1, w2 = tl.load(source, mask=known, other=0.0), tl.load(source + 1, mask=known, other=0.0)
            if ADJOINT:
                w1 = tl.where(now > 0, w1, w1 - k * w2)
            else:
                w2 = tl.where(now > 0, w2, w2 + k * w1)
            end1, end2 = state_after(columns, w1, w2, left, k, b0, m, p, g1, g0, SHIFTED, ADJOINT)
            columns, _, _ = output(columns, w1, w2, k, b0, m, p, g1, g0, SHIFTED, ADJOINT)
            if ADJOINT:
                end1 = tl.where(now + T < time, end1, end1 + k * end2)
            else:
                end2 = tl.where(now + T < time, end2, end2 - k * end1)
            tl.store(after + state, end1, mask=there)
            tl.store(after + state + 1, end2, mask=there)
        tl.store(y + now * forwards, tile_of(columns, y.dtype.element_ty, LANES, LOG_T), mask=mask)
        tl.debug_barrier()  # the states are read again, by other threads if the compiler lays them out so
