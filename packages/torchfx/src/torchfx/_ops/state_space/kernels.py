"""Systems that change along the signal as Triton kernels.

A sample is an affine map of the state, s' = A s + B x, and such maps compose to one of the same kind. So systems of one
or two states are scanned: a tile of neighbouring samples becomes their maps, an associative scan composes each with all
before it, and each applied to the state that the tile starts from gives the state after its sample. That is exact
whatever the coefficients are: nothing is neglected, as it is where chunks start early from rest (sos/kernels.py).

A program walks the tiles of a channel. A long channel is cut into chunks, one for each program, by two launches:
`chunk_maps` composes the maps of each chunk, and `scanned` scans those of the chunks before its own first.

Maps of two states are composed in the basis s1 + s2, s1 - s2. Where both poles are near 1 or near -1, the elements of
A^k grow with k in the direct forms' own basis, and what they multiply nearly cancels. In this basis one element grows,
and multiplies a component that is small itself.

A product of maps overflows where unstable coefficients would let a state grow by 1e308: then states become NaN, even
of a signal that is zero there.

`sequential` is for more states and for the saturated loop, which is not affine: a lane is a channel.

An all-pole filter of up to two coefficients is such a system too, whose states are its past outputs: COMPANION, where
the coefficients stand for the matrix.
"""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["chunk_maps", "scanned", "sequential"]


# --- affine maps: tuples of a matrix, row by row, and what is added ----------------------------------------


@triton.jit
def applied(affine, s, STATES: tl.constexpr):
    """Return the state after a map."""
    found = ()
    for i in tl.static_range(STATES):
        total = affine[STATES * STATES + i]
        for k in tl.static_range(STATES):
            total = tl.fma(affine[i * STATES + k], s[k], total)
        found = found + (total,)
    return found


@triton.jit
def composed(first, then, STATES: tl.constexpr):
    """Return the map that is first the one, then the other."""
    found = ()
    for i in tl.static_range(STATES):
        for j in tl.static_range(STATES):
            total = then[i * STATES] * first[j]
            for k in tl.static_range(1, STATES):
                total = tl.fma(then[i * STATES + k], first[k * STATES + j], total)
            found = found + (total,)
    added = ()
    for i in tl.static_range(STATES):
        added = added + (first[STATES * STATES + i],)
    return found + applied(then, added, STATES)


@triton.jit
def composed_1(p, q, m, b):
    """Compose maps of one state, as a scan wants it."""
    return composed((p, q), (m, b), 1)


@triton.jit
def composed_2(p11, p12, p21, p22, q1, q2, m11, m12, m21, m22, b1, b2):
    """Compose maps of two states, as a scan wants it."""
    return composed((p11, p12, p21, p22, q1, q2), (m11, m12, m21, m22, b1, b2), 2)


@triton.jit
def prefixes(maps, STATES: tl.constexpr):
    """Return each map composed with all before it."""
    return tl.associative_scan(maps, 0, composed_1 if STATES == 1 else composed_2)


@triton.jit
def last_of(values, TILE: tl.constexpr):
    """Return the last element of each tensor."""
    found = ()
    for i in tl.static_range(len(values)):
        found = found + (tl.sum(tl.where(tl.arange(0, TILE) == TILE - 1, values[i], 0.0), 0),)
    return found


@triton.jit
def turned(s, STATES: tl.constexpr):
    """Return a state in the basis of the maps, or back, times the number of states."""
    if STATES == 2:
        s = s[0] + s[1], s[0] - s[1]
    return s


@triton.jit
def maps_of(x, m, there, STATES: tl.constexpr, COMPANION: tl.constexpr):
    """Return the maps of samples x whose coefficients lie at m; the identity without coefficients."""
    ONE: tl.constexpr = STATES == 1
    if COMPANION:
        a11, b1 = -tl.load(m, mask=there, other=0.0).to(tl.float64), x
        if not ONE:
            a12 = -tl.load(m + 1, mask=there, other=0.0).to(tl.float64)
            a21, a22, b2 = 1.0, 0.0, 0.0
    else:
        a11, b1 = tl.load(m, mask=there, other=0.0), tl.load(m + STATES, mask=there, other=0.0) * x
        if not ONE:
            a12 = tl.load(m + 1, mask=there, other=0.0)
            a21, a22 = tl.load(m + 3, mask=there, other=0.0), tl.load(m + 4, mask=there, other=0.0)
            b2 = tl.load(m + 5, mask=there, other=0.0) * x
    found = (tl.where(there, a11, 1.0), b1)
    if not ONE:
        # Near poles at 1 or -1 these differences are exact, whatever is left of them.
        plus1, plus2, minus1, minus2 = a11 + a12, a21 + a22, a11 - a12, a21 - a22
        found = (
            tl.where(there, 0.5 * (plus1 + plus2), 1.0),
            tl.where(there, 0.5 * (minus1 + minus2), 0.0),
            tl.where(there, 0.5 * (plus1 - plus2), 0.0),
            tl.where(there, 0.5 * (minus1 - minus2), 1.0),
            b1 + b2,
            b1 - b2,
        )
    return found


# --- one or two states: scans ------------------------------------------------------------------------------


@triton.jit(do_not_specialize=["repeat", "times", "rows", "m_repeat", "chunks", "chunk_tiles"])
def chunk_maps(
    x, row_stride, time_stride, repeat, m, hold, step, times, rows, m_repeat, maps, time, chunks, chunk_tiles,
    STATES: tl.constexpr, COMPANION: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Write the composed map of a chunk: maps (channels, chunks, STATES * (STATES + 1)).

    The coefficients of sample t begin at t // hold * step.
    """
    SIZE: tl.constexpr = STATES if COMPANION else (STATES + 1) * (STATES + 1)
    channel = (tl.program_id(0) // chunks).to(tl.int64)
    x += channel // repeat * row_stride
    m += (channel // m_repeat) % rows * times * SIZE
    start = (tl.program_id(0) % chunks).to(tl.int64) * chunk_tiles * TILE
    zero = tl.full((), 0.0, tl.float64)
    total = (zero + 1.0, zero)
    if STATES == 2:
        total = (zero + 1.0, zero, zero, zero + 1.0, zero, zero)
    for now in range(start, tl.minimum(start + chunk_tiles * TILE, time), TILE):
        t = now + tl.arange(0, TILE)
        there = t < time
        sample = tl.load(x + t * time_stride, mask=there, other=0.0).to(tl.float64)
        tile = prefixes(maps_of(sample, m + t // hold * step, there, STATES, COMPANION), STATES)
        total = composed(total, last_of(tile, TILE), STATES)
    maps += tl.program_id(0).to(tl.int64) * (STATES * (STATES + 1))
    for i in tl.static_range(STATES * (STATES + 1)):
        tl.store(maps + i, total[i])


@triton.jit(do_not_specialize=["repeat", "times", "rows", "m_repeat", "chunks", "chunk_tiles"])
def scanned(
    x, row_stride, time_stride, repeat, y, m, hold, step, times, rows, m_repeat, before, after, maps,
    time, chunks, chunk_tiles,
    STATES: tl.constexpr, COMPANION: tl.constexpr, HAS_STATE: tl.constexpr, HAS_MAPS: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Run a chunk of a channel; the program of the last one writes the state after. There are at most TILE chunks."""
    SIZE: tl.constexpr = STATES if COMPANION else (STATES + 1) * (STATES + 1)
    channel = (tl.program_id(0) // chunks).to(tl.int64)
    chunk = tl.program_id(0) % chunks
    x += channel // repeat * row_stride
    y += channel * time
    m += (channel // m_repeat) % rows * times * SIZE
    index = tl.arange(0, TILE)

    s = ()
    for i in tl.static_range(STATES):
        value = tl.full((), 0.0, tl.float64)
        if HAS_STATE:
            value = tl.load(before + channel * STATES + i)
        s = s + (value,)
    s = turned(s, STATES)
    if HAS_MAPS:
        maps += (channel * chunks + index) * (STATES * (STATES + 1))
        earlier = ()
        for i in tl.static_range(STATES * (STATES + 1)):
            diagonal = 1.0 if i < STATES * STATES and i % (STATES + 1) == 0 else 0.0
            earlier = earlier + (tl.load(maps + i, mask=index < chunk, other=diagonal),)
        s = applied(last_of(prefixes(earlier, STATES), TILE), s, STATES)

    start = chunk.to(tl.int64) * chunk_tiles * TILE
    stop = tl.minimum(start + chunk_tiles * TILE, time)
    for now in range(start, stop, TILE):
        t = now + index
        there = t < time
        sample = tl.load(x + t * time_stride, mask=there, other=0.0).to(tl.float64)
        row = m + t // hold * step
        to = applied(prefixes(maps_of(sample, row, there, STATES, COMPANION), STATES), s, STATES)
        if COMPANION:
            out = to[0]
            if STATES == 2:
                out = 0.5 * (to[0] + to[1])
        else:
            out = tl.load(row + (SIZE - 1), mask=there, other=0.0) * sample
            c1 = tl.load(row + (SIZE - 1 - STATES), mask=there, other=0.0)
            s1 = tl.where(index == 0, s[0], tl.gather(to[0], tl.maximum(index - 1, 0), 0))
            if STATES == 1:
                out = tl.fma(c1, s1, out)
            else:
                c2 = tl.load(row + (SIZE - STATES), mask=there, other=0.0)
                s2 = tl.where(index == 0, s[1], tl.gather(to[1], tl.maximum(index - 1, 0), 0))
                out = tl.fma(0.5 * (c1 + c2), s1, tl.fma(0.5 * (c1 - c2), s2, out))
        tl.store(y + t, out.to(y.dtype.element_ty), mask=there)
        s = last_of(to, TILE)

    if (start < time) & (stop == time):
        s = turned(s, STATES)
        for i in tl.static_range(STATES):
            tl.store(after + channel * STATES + i, s[i] * (1.0 / STATES))


# --- any number of states, and the saturated loop ----------------------------------------------------------


@triton.jit
def tanh(w):
    """Return the hyperbolic tangent of float64 numbers, as p / (p + 2) with p = exp(2 w) - 1."""
    double = 2 * tl.abs(w)
    double = tl.where(double > 40, 40.0, double)  # keeps NaN
    series = double * 0 + 1
    for i in tl.static_range(12, 1, -1):
        series = tl.fma(double * (1.0 / i), series, 1.0)
    p = tl.where(double < 0.25, double * series, tl.exp(double) - 1)
    return tl.where(w < 0, -p, p) / (p + 2)


@triton.jit
def solved(b, c, NEWTON_STEPS: tl.constexpr):
    """Return the solution of w + c tanh(w) = b for c >= 0, by Newton's method from a start before it."""
    w = b / (1 + c)
    steps, going = 0, 1
    while (going > 0) & (steps < NEWTON_STEPS):
        h = tanh(w)
        step = (b - w - c * h) / (1 + c * (1 - h * h))
        w += step
        going = tl.max((tl.abs(step) > 1e-15 * tl.abs(w)).to(tl.int32), 0)
        steps += 1
    return w


@triton.jit(do_not_specialize=["repeat", "times", "rows", "m_repeat", "channels"])
def sequential(
    x, row_stride, time_stride, repeat, y, m, hold, times, rows, m_repeat, feedback, drive, before, after,
    channels, time, STATES: tl.constexpr, SATURATED: tl.constexpr, HAS_STATE: tl.constexpr,
    NEWTON_STEPS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Run whole channels, one in each lane."""
    SIZE: tl.constexpr = STATES + 1
    channel = tl.program_id(0).to(tl.int64) * LANES + tl.arange(0, LANES)
    there = channel < channels
    channel = tl.minimum(channel, channels - 1)
    x += channel // repeat * row_stride
    y += channel * time
    m += (channel // m_repeat) % rows * times * (SIZE * SIZE)
    s = ()
    for i in tl.static_range(STATES):
        value = tl.zeros((LANES,), tl.float64)
        if HAS_STATE:
            value = tl.load(before + channel * STATES + i)
        s = s + (value,)
    if SATURATED:
        around, gain = tl.load(feedback + channel), tl.load(drive + channel)
        safe = tl.where(gain == 0, 1.0, gain)
    for _ in range(times):
        weights = ()
        for i in tl.static_range(SIZE * SIZE):
            weights = weights + (tl.load(m + i),)
        for _ in range(hold):
            sample = tl.load(x).to(tl.float64)
            if SATURATED:
                idle = sample * 0
                for k in tl.static_range(STATES):
                    idle = tl.fma(weights[STATES * SIZE + k], s[k], idle)
                z, c = sample - around * idle, around * weights[SIZE * SIZE - 1]
                driven = tanh(solved(gain * z, c, NEWTON_STEPS)) / safe
                sample = tl.where(gain == 0, z / (1 + c), driven)
            found = ()
            for i in tl.static_range(SIZE):
                total = weights[i * SIZE + STATES] * sample
                for k in tl.static_range(STATES):
                    total = tl.fma(weights[i * SIZE + k], s[k], total)
                found = found + (total,)
            tl.store(y, found[STATES].to(y.dtype.element_ty), mask=there)
            s = ()
            for i in tl.static_range(STATES):
                s = s + (found[i],)
            x += time_stride
            y += 1
        m += SIZE * SIZE
    for i in tl.static_range(STATES):
        tl.store(after + channel * STATES + i, s[i], mask=there)
