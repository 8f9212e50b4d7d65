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

With PAIRS, the arithmetic is that of pairs of float32 (two_float.py), for chips with few float64 units; the sections
are shifted then, too. Tables, states and checkpoints in memory are float64 or the same 64 bits.

Products are fused where `fma` says so and nowhere else: kernels are compiled with `enable_fp_fusion=False`.
"""

from __future__ import annotations

import triton
import triton.language as tl

from torchfx._ops.kernels import lanes_of, tile_of, widened
from torchfx._ops.sos.chunks import chunk_of, exponents, power_of_two
from torchfx._ops.two_float import (
    add,
    double,
    fma,
    from_samples,
    loaded,
    masked_load,
    mul,
    number,
    numbers,
    packed,
    rough_add,
    rough_fma,
    samples,
    select,
    signed,
    taken,
    zeros_like,
)

__all__ = ["TABLE", "adjoint", "chunked", "sequential"]

TABLE = tl.constexpr(32)
"""Numbers of a section in the table: those of `section`, at 6 what the adjoint's states are multiplied by and at 7 its
inverse, and from 8 on the powers of its matrix, 4 for each level."""


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
        y = rough_fma(g1, w1, rough_fma(g0, w2, mul(b0, x)))
        to2 = w1
        if SHIFTED:
            to2 = add(signed(k, w2), w1)
        return y, fma(m, w1, rough_fma(p, w2, x)), to2
    if SHIFTED:
        to2 = rough_fma(g0, x, signed(k, w2))
    else:
        to2 = mul(g0, x)
    return rough_fma(b0, x, w1), fma(m, w1, rough_fma(g1, x, w2)), fma(p, w1, to2)


@triton.jit
def decay(y, w1, w2, k, m, p, SHIFTED: tl.constexpr):
    """Return an output plus what a state gives to it without input, and the state after."""
    if SHIFTED:
        to2 = fma(p, w1, signed(k, w2))
    else:
        to2 = mul(p, w1)
    return rough_add(y, w1), fma(m, w1, w2), to2


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
    out, w1, w2 = (mul(b0, x),), mul(g1, x), mul(g0, x)
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
    """Return columns with zeros after each lane's first `left` samples."""
    found = ()
    for j in tl.static_range(len(columns)):
        found = found + (select(j < left, columns[j], zeros_like(columns[j])),)
    return found


@triton.jit
def continued(columns, left, s1, s2, k, m, PAIRS: tl.constexpr):
    """Return turned columns with two samples after each lane's first `left`, which bring an adjoint to a state."""
    T: tl.constexpr = len(columns)
    first, second = number(s1 - (double(k) + double(m)) * s2, PAIRS), number(s2, PAIRS)
    found = ()
    for j in tl.static_range(T):
        behind = T - 1 - j - left
        added = select(behind == 1, second, select(behind == 0, first, zeros_like(columns[j])))
        found = found + (select(behind < 0, columns[j], added),)
    return found


@triton.jit
def store_lanes(to, columns, LANES: tl.constexpr):
    """Store a tile's columns, one after the other."""
    rounded = samples(columns)
    for j in tl.static_range(len(columns)):
        tl.store(to + j * LANES, rounded[j].to(to.dtype.element_ty))


@triton.jit
def load_lanes(stored, mask, LANES: tl.constexpr, T: tl.constexpr):
    """Load stored columns, turned."""
    found = ()
    for j in tl.static_range(T):
        found = found + (tl.load(stored + (T - 1 - j) * LANES, mask=mask, other=0.0),)
    return found


@triton.jit
def add_to(sums, values, used, known, PAIRS: tl.constexpr):
    """Add to sums in memory, of which some lanes' are not known yet."""
    tl.store(sums, packed(add(masked_load(sums, known, PAIRS), values)), mask=used)


@triton.jit
def total(sums, known, factor, PAIRS: tl.constexpr):
    """Return the sum of all lanes' sums in memory, times a factor."""
    return tl.sum(double(masked_load(sums, known, PAIRS)) * factor, 0)


@triton.jit
def output_and_sums(
    columns, entering, leaving, w1, w2, k, b0, m, p, g1, g0, SHIFTED: tl.constexpr, PAIRS: tl.constexpr
):  # fmt: skip
    """Run the adjoint from the lanes' states. Return its output and five sums over each lane's samples.

    They are sums of products of what enters and leaves the section with the gradients at its output and its states.
    """
    out = ()
    zero = zeros_like(columns[0])
    g_x, w1_x, w2_x, w1_y, w2_y = zero, zero, zero, zero, zero
    for j in tl.static_range(len(columns)):
        g, x, y = columns[j], from_samples(entering[j], PAIRS), from_samples(leaving[j], PAIRS)
        g_x = fma(g, x, g_x)
        w1_x, w2_x = fma(w1, x, w1_x), fma(w2, x, w2_x)
        w1_y, w2_y = fma(w1, y, w1_y), fma(w2, y, w2_y)
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
        w1, w2 = select(j < valid, to1, w1), select(j < valid, to2, w2)
    return w1, w2


@triton.jit
def decayed(w1, w2, valid, k, m, p, T: tl.constexpr, SHIFTED: tl.constexpr):
    """Return what states are after `valid` samples, at most T, without input."""
    for j in tl.static_range(T):
        _, to1, to2 = decay(w1, w1, w2, k, m, p, SHIFTED)
        w1, w2 = select(j < valid, to1, w1), select(j < valid, to2, w2)
    return w1, w2


@triton.jit
def squared(m11, m12, m21, m22):
    """Return a matrix times itself."""
    cross, trace = m12 * m21, m11 + m22
    return tl.fma(m11, m11, cross), m12 * trace, m21 * trace, tl.fma(m22, m22, cross)


@triton.jit
def factor_of(exponent, each):
    """Return what sections are multiplied by, so that their outputs are divided by 2^exponent."""
    before = tl.where(each > 0, tl.gather(exponent, tl.maximum(each - 1, 0), 0), 0)
    return power_of_two(before - tl.gather(exponent, each, 0))


@triton.jit
def tabulate(
    table, sos, factor, LOG_LANES: tl.constexpr, LOG_T: tl.constexpr, SHIFTED: tl.constexpr, PAIRS: tl.constexpr = False
):  # fmt: skip
    """Write sections times a factor, and the powers of their matrices that carry a state over 1, 2, 4, ... lanes."""
    k, b0, m, p, g1, g0 = section(sos, SHIFTED)
    b0, g1, g0 = b0 * factor, g1 * factor, g0 * factor
    tl.store(table, packed(number(k, PAIRS)))
    tl.store(table + 1, packed(number(b0, PAIRS)))
    tl.store(table + 2, packed(number(m, PAIRS)))
    tl.store(table + 3, packed(number(p, PAIRS)))
    tl.store(table + 4, packed(number(g1, PAIRS)))
    tl.store(table + 5, packed(number(g0, PAIRS)))
    m11, m12, m21, m22 = m, k * 0 + 1, p, k
    for level in tl.static_range(LOG_T + LOG_LANES):
        if level >= LOG_T:
            power = table + 8 + 4 * (level - LOG_T)
            tl.store(power, packed(number(m11, PAIRS)))
            tl.store(power + 1, packed(number(m12, PAIRS)))
            tl.store(power + 2, packed(number(m21, PAIRS)))
            tl.store(power + 3, packed(number(m22, PAIRS)))
        m11, m12, m21, m22 = squared(m11, m12, m21, m22)


@triton.jit
def tabulated(table, PAIRS: tl.constexpr = False):
    """Return what `section` returned, times the factor."""
    return (
        loaded(table, PAIRS), loaded(table + 1, PAIRS), loaded(table + 2, PAIRS), loaded(table + 3, PAIRS),
        loaded(table + 4, PAIRS), loaded(table + 5, PAIRS),
    )  # fmt: skip


@triton.jit
def moved(values, there, LANES: tl.constexpr, LOG_LANES: tl.constexpr):
    """Return what lies at the places `there` of each 2^LOG_LANES lanes: of one warp, so that they only exchange."""
    shape: tl.constexpr = (LANES >> LOG_LANES, 2**LOG_LANES)
    return tl.reshape(tl.gather(tl.reshape(values, shape), tl.reshape(there, shape), 1), (LANES,))


@triton.jit
def gathered(values, there, LANES: tl.constexpr, LOG_LANES: tl.constexpr):
    """Return what `moved` does of numbers."""
    if isinstance(values, tl.tensor):
        return moved(values, there, LANES, LOG_LANES)
    else:
        return moved(values[0], there, LANES, LOG_LANES), moved(values[1], there, LANES, LOG_LANES)


@triton.jit
def carried(
    w1, w2, before1, before2, table, LANES: tl.constexpr, LOG_LANES: tl.constexpr, ADJOINT: tl.constexpr,
    PAIRS: tl.constexpr = False,
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
        m11, m12, m21, m22 = (
            loaded(power, PAIRS), loaded(power + 1, PAIRS), loaded(power + 2, PAIRS), loaded(power + 3, PAIRS),
        )  # fmt: skip
        if ADJOINT:
            m12, m21 = m21, m12
        if level == 0:
            w1 = select(first, fma(m11, before1, rough_fma(m12, before2, w1)), w1)
            w2 = select(first, fma(m21, before1, rough_fma(m22, before2, w2)), w2)
        source = lane - 2**level
        there = tl.maximum(source, 0)
        if ADJOINT:
            there = end - there
        v1, v2 = gathered(w1, there, LANES, LOG_LANES), gathered(w2, there, LANES, LOG_LANES)
        w1 = select(source >= 0, fma(m11, v1, rough_fma(m12, v2, w1)), w1)
        w2 = select(source >= 0, fma(m21, v1, rough_fma(m22, v2, w2)), w2)
    there = tl.maximum(lane - 1, 0)
    if ADJOINT:
        there = end - there
    start1 = select(first, before1, gathered(w1, there, LANES, LOG_LANES))
    start2 = select(first, before2, gathered(w2, there, LANES, LOG_LANES))
    return start1, start2, w1, w2


@triton.jit
def through(
    columns, before1, before2, valid, incomplete, table,
    LANES: tl.constexpr, LOG_LANES: tl.constexpr, SHIFTED: tl.constexpr, PAIRS: tl.constexpr = False,
):  # fmt: skip
    """Run a section over a tile. Return output, and the lanes' states after their first `valid` samples.

    All samples are valid where the tile isn't `incomplete`. The rest is as in `carried`.
    """
    T: tl.constexpr = len(columns)
    k, b0, m, p, g1, g0 = tabulated(table, PAIRS)
    part1, part2 = zeros_like(columns[0]), zeros_like(columns[0])
    if incomplete:
        part1, part2 = state_after(columns, part1, part2, valid, k, b0, m, p, g1, g0, SHIFTED, False)
    columns, end1, end2 = from_rest(columns, k, b0, m, p, g1, g0, SHIFTED)
    start1, start2, end1, end2 = carried(end1, end2, before1, before2, table, LANES, LOG_LANES, False, PAIRS)
    if incomplete:
        end1, end2 = decayed(start1, start2, valid, k, m, p, T, SHIFTED)
        end1, end2 = add(end1, part1), add(end2, part2)
    return with_decay(columns, start1, start2, k, m, p, SHIFTED), end1, end2


@triton.jit(
    do_not_specialize=["repeat", "count", "rows", "sos_repeat", "channels", "chunks", "chunk_tiles", "every"]
)  # fmt: skip
def chunked(
    x, row_stride, time_stride, repeat, y, sos, count, rows, sos_repeat, before, after,
    channels, time, chunks, chunk_tiles, log_tolerance, table, checkpoints, every,
    N: tl.constexpr, LANES: tl.constexpr, LOG_LANES: tl.constexpr, LOG_T: tl.constexpr,
    SHIFTED: tl.constexpr, PAIRS: tl.constexpr, HAS_STATE: tl.constexpr, HAS_CHECKPOINTS: tl.constexpr,
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
    begin, start, stop, log_gain = chunk_of(
        sos, count, log_tolerance, tl.program_id(0) % chunks, tiles, chunk_tiles, N, TILE
    )
    index = tl.arange(0, N)
    exponent = exponents(log_gain, count, N)
    scale, inverse = power_of_two(exponent), power_of_two(-exponent)
    lane = tl.arange(0, LANES)
    offset = tl.arange(0, TILE)
    there = index < count
    state = (index * channels + channel) * 2
    shift = tl.zeros((N,), tl.float64)
    if SHIFTED:
        a0 = tl.load(sos + 6 * index + 3, mask=there, other=1.0)
        a1, a2 = tl.load(sos + 6 * index + 4, mask=there), tl.load(sos + 6 * index + 5, mask=there)
        shift = shift_of(a1 / a0, a2 / a0)
    state1, state2 = tl.zeros((N,), tl.float64), tl.zeros((N,), tl.float64)
    if HAS_STATE:
        given = index < tl.where(begin == 0, count, 0)
        state1 = tl.load(before + state, mask=given, other=0.0)
        state2 = tl.load(before + state + 1, mask=given, other=0.0) + shift * state1
    carry1, carry2 = number(state1 * inverse, PAIRS), number(state2 * inverse, PAIRS)
    if HAS_CHECKPOINTS:
        checkpoints += channel * (tl.cdiv(time, TILE // every) * count * 2)

    each = tl.minimum(index, count - 1)
    factor = factor_of(exponent, each)
    tabulate(table + TABLE * each, sos + 6 * each, factor, LOG_LANES, LOG_T, SHIFTED, PAIRS)
    tl.debug_barrier()
    now = begin * TILE
    left = tl.minimum(time - now, TILE).to(tl.int32)
    ahead = tl.load(x + now * time_stride + offset * time_stride, mask=offset < left, other=0.0)
    for tile in range(begin, stop):
        now = tile * TILE
        left = tl.minimum(time - now, TILE).to(tl.int32)
        columns = numbers(lanes_of(ahead, LANES, LOG_T), PAIRS)
        following = now + TILE
        more = tl.minimum(time - following, TILE).to(tl.int32)
        ahead = tl.load(x + following * time_stride + offset * time_stride, mask=offset < more, other=0.0)
        if HAS_CHECKPOINTS:
            kept = checkpoints + (tile * every * count + index) * 2
            own = index < tl.where(tile < start, 0, count)
            tl.store(kept, double(carry1) * scale, mask=own)
            tl.store(kept + 1, double(carry2) * scale, mask=own)
        last = index * 0 + (left - 1) // T
        for i in range(count):
            at = lane * 0 + i
            columns, end1, end2 = through(
                columns, taken(carry1, at), taken(carry2, at), left - lane * T, left < TILE,
                table + TABLE * i, LANES, LOG_LANES, SHIFTED, PAIRS,
            )  # fmt: skip
            carry1 = select(index == i, taken(end1, last), carry1)
            carry2 = select(index == i, taken(end2, last), carry2)
        result = tl.reshape(tile_of(samples(columns), y.dtype.element_ty, LANES, LOG_T), (TILE,))
        tl.store(y + now + offset, result, mask=offset < tl.where(tile < start, 0, left))

    if (start < stop) & (stop == tiles):
        state1, state2 = double(carry1) * scale, double(carry2) * scale
        tl.store(after + state, state1, mask=there)
        tl.store(after + state + 1, state2 - shift * state1, mask=there)


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
    SHIFTED: tl.constexpr, PAIRS: tl.constexpr, HAS_STATE: tl.constexpr, OF_SECTIONS: tl.constexpr,
):  # fmt: skip
    """Run a chunk of a channel's gradient g through the adjoint: sections, tiles and samples, all from the last on.

    The adjoint starts from the gradient of the state after, `before`, in the two samples after the last one.

    If OF_SECTIONS, the gradients of the sections are summed up. A tile of x runs through the cascade once more, from
    its checkpoint; what enters each section, and the output, go to the program's `signals` (count + 1, TILE), from
    where the adjoint's lanes read them again. Each lane sums up its own in `products` (programs, count, 5, LANES); what
    the chunk adds to the gradients goes to `by_chunk` (programs, count, 6).
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
    exponent = exponents(log_gain, count, N)
    scale, inverse = power_of_two(exponent), power_of_two(-exponent)
    zero = tl.zeros((N,), tl.float64)
    carry1, carry2 = number(zero, PAIRS), number(zero, PAIRS)
    if OF_SECTIONS:
        x += channel // repeat * row_stride
        checkpoints += channel * (tl.cdiv(time, TILE // every) * count * 2)
        signals += program * (count + 1) * TILE + lane
        products += program * count * 5 * LANES + lane

    each = tl.minimum(index, count - 1)
    factor = factor_of(exponent, each)
    tl.store(table + TABLE * each + 6, tl.gather(scale, each, 0))
    tl.store(table + TABLE * each + 7, tl.gather(inverse, each, 0))
    tabulate(table + TABLE * each, sos + 6 * each, factor, LOG_LANES, LOG_T, SHIFTED, PAIRS)
    tl.debug_barrier()
    for nth in range(begin, stop):
        tile = tiles - 1 - nth
        first = tile * TILE
        left = tl.minimum(time - first, TILE).to(tl.int32)  # 0 or -1: the tile holds nothing but the state
        own = tl.where(nth < start, 0, left)
        if OF_SECTIONS:
            if own > 0:
                now = tl.load(x + first * time_stride + offset * time_stride, mask=offset < left, other=0.0)
                columns = numbers(lanes_of(now, LANES, LOG_T), PAIRS)
                kept = checkpoints + tile * every * count * 2
                for i in range(count):
                    store_lanes(signals + i * TILE, columns, LANES)
                    at = lane * 0 + i
                    own_inverse = tl.load(table + TABLE * i + 7)
                    state1 = number(tl.load(kept + 2 * i) * own_inverse, PAIRS)
                    state2 = number(tl.load(kept + 2 * i + 1) * own_inverse, PAIRS)
                    columns, _, _ = through(
                        columns, state1, state2, 0, False, table + TABLE * i, LANES, LOG_LANES, SHIFTED, PAIRS
                    )
                    if HAS_STATE:
                        if left < TILE:
                            columns = ended(columns, left - lane * T)
                store_lanes(signals + count * TILE, columns, LANES)
                tl.debug_barrier()
            used = lane < tl.where(own > 0, LANES, 0)
            known = lane < tl.where((nth > start) & (first + TILE < time), LANES, 0)
            leaving = load_lanes(signals + count * TILE, used, LANES, T)
        ahead = tl.load(g + first * g_time_stride + offset * g_time_stride, mask=offset < left, other=0.0)
        columns = turned(numbers(lanes_of(ahead, LANES, LOG_T), PAIRS))
        for last in range(count):
            i = count - 1 - last
            this = table + TABLE * i
            k, b0, m, p, g1, g0 = tabulated(this, PAIRS)
            at = lane * 0 + i
            if HAS_STATE:
                if left < TILE:
                    given = before + (i * channels + channel) * 2
                    own_scale = tl.load(this + 6)
                    state1, state2 = tl.load(given) * own_scale, tl.load(given + 1) * own_scale
                    columns = continued(columns, left - lane * T, state1, state2, k, m, PAIRS)
            rest = zeros_like(columns[0])
            _, end1, end2 = output(columns, rest, rest, k, b0, m, p, g1, g0, SHIFTED, True)
            start1, start2, end1, end2 = carried(
                end1, end2, taken(carry1, at), taken(carry2, at), this, LANES, LOG_LANES, True, PAIRS
            )
            if OF_SECTIONS:
                entering = load_lanes(signals + i * TILE, used, LANES, T)
                columns, g_x, w1_x, w2_x, w1_y, w2_y = output_and_sums(
                    columns, entering, leaving, start1, start2, k, b0, m, p, g1, g0, SHIFTED, PAIRS
                )
                leaving = entering
                so_far = products + i * 5 * LANES
                add_to(so_far, g_x, used, known, PAIRS)
                add_to(so_far + LANES, w1_x, used, known, PAIRS)
                add_to(so_far + 2 * LANES, w2_x, used, known, PAIRS)
                add_to(so_far + 3 * LANES, w1_y, used, known, PAIRS)
                add_to(so_far + 4 * LANES, w2_y, used, known, PAIRS)
            else:
                columns, _, _ = output(columns, start1, start2, k, b0, m, p, g1, g0, SHIFTED, True)
            carry1 = select(index == i, taken(end1, index * 0), carry1)
            carry2 = select(index == i, taken(end2, index * 0), carry2)
        result = tl.reshape(tile_of(samples(turned(columns)), y.dtype.element_ty, LANES, LOG_T), (TILE,))
        tl.store(y + first + offset, result, mask=offset < own)
        if OF_SECTIONS:
            tl.debug_barrier()

    if OF_SECTIONS:
        known = lane < tl.where((start < stop) & ((tiles - stop) * TILE < time), LANES, 0)
        for i in range(count):
            so_far = products + i * 5 * LANES
            at = lane * 0 + i
            by_x = tl.gather(factor, at, 0)
            store_gradients(
                by_chunk + (program * count + i) * 6, sos + 6 * i,
                total(so_far, known, by_x, PAIRS), total(so_far + LANES, known, by_x, PAIRS),
                total(so_far + 2 * LANES, known, by_x, PAIRS), total(so_far + 3 * LANES, known, 1.0, PAIRS),
                total(so_far + 4 * LANES, known, 1.0, PAIRS), SHIFTED,
            )  # fmt: skip
    if (start < stop) & (stop == tiles):
        k = double(loaded(table + TABLE * each, PAIRS))
        state = (index * channels + channel) * 2
        state1, state2 = double(carry1) * inverse, double(carry2) * inverse
        tl.store(after + state, state1 + k * state2, mask=index < count)
        tl.store(after + state + 1, state2, mask=index < count)


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
