"""The network of delay lines as a Triton kernel: one launch, a program for each signal.

A program walks through time in blocks no longer than the shortest delay, so that nothing a block writes into a line is
read in the same block. A block is a tile of lines by samples: what comes out of the lines goes through the matrix, a
product on tensor cores where the chip has them for float64, and through the filters, by the scan of sos/kernels.py.

Lines lie in `lines_after`, as rings of exactly their delays: what comes out of a place is replaced by what goes in at
the same time. The state before is copied there, turned so that the oldest sample comes first when the signal ends.
"""

from __future__ import annotations

import triton
import triton.language as tl

from torchfx._ops.kernels import lanes_of, tile_of
from torchfx._ops.sos.kernels import TABLE, tabulate, through

__all__ = ["network"]


@triton.jit
def wrapped(place, length):
    """Return a place modulo a length, which it is below twice of."""
    return tl.where(place < length, place, place - length)


@triton.jit
def mixed(matrix, tile):
    """Return a matrix (LINES, LINES) times a tile (LINES, samples)."""
    return matrix * tile if tile.shape[0] == 1 else tl.dot(matrix, tile, out_dtype=tl.float64)


@triton.jit
def filtered(
    tile, left, first, last, table, sections, lines, before, after, section_stride,
    LOG_T: tl.constexpr, LOG_RUN: tl.constexpr, SHIFTED: tl.constexpr, HAS_STATE: tl.constexpr,
):  # fmt: skip
    """Run each line of a tile through its cascade. The states lie in `after` between two tiles, shifted.

    A line is a run of 2^LOG_RUN lanes of 2^LOG_T samples; `left` of its samples are there. Tiles whose samples leave a
    lane incomplete take longer.
    """
    LANES: tl.constexpr = tile.shape[0] << LOG_RUN
    lane = tl.arange(0, LANES)
    line = tl.minimum(lane >> LOG_RUN, lines - 1)
    valid = left - (lane % 2**LOG_RUN << LOG_T)
    holds_last = (valid > 0) & (valid <= 2**LOG_T) & (lane >> LOG_RUN < lines)
    columns = lanes_of(tile, LANES, LOG_T)
    for i in range(sections):
        this = table + (line * sections + i) * TABLE
        k = tl.load(this)
        state = i * section_stride + 2 * line
        source = tl.where(first, before + state, after + state)
        known = lane < tl.where((first == 0) | HAS_STATE, LANES, 0)
        start1, start2 = tl.load(source, mask=known, other=0.0), tl.load(source + 1, mask=known, other=0.0)
        start2 = tl.where(first, start2 + k * start1, start2)
        tl.debug_barrier()  # all have read the state before one writes it
        columns, end1, end2 = through(
            columns, start1, start2, valid, left % 2**LOG_T != 0, this, LANES, LOG_RUN, SHIFTED
        )
        tl.store(after + state, end1, mask=holds_last)
        tl.store(after + state + 1, tl.where(last, end2 - k * end1, end2), mask=holds_last)
    return tl.reshape(tile_of(columns, tl.float64, LANES, LOG_T), tile.shape)


@triton.jit(
    do_not_specialize=[
        "repeat", "inputs", "outputs", "rows", "system_repeat", "sections", "sos_rows", "sos_repeat", "signals",
        "block",
    ]
)  # fmt: skip
def network(
    x, row_stride, time_stride, repeat, y, inputs, outputs, delays, system, rows, system_repeat,
    sos, table, sections, sos_rows, sos_repeat, lines, lines_after, before, after, signals, time, block,
    LINES: tl.constexpr, TIME: tl.constexpr, LOG_T: tl.constexpr, LOG_RUN: tl.constexpr, SHIFTED: tl.constexpr,
    FILTERED: tl.constexpr, FILTER_FIRST: tl.constexpr, HAS_LINES: tl.constexpr, HAS_STATE: tl.constexpr,
):  # fmt: skip
    """Run a signal through the network, in tiles of LINES lines by TIME samples.

    A delay of d samples is given as 2 d + 1. Triton compiles a separate kernel for a 1 and for multiples of 16.
    """
    signal = tl.program_id(0).to(tl.int64)
    line, offset = tl.arange(0, LINES), tl.arange(0, TIME)
    count: tl.constexpr = len(delays)
    delay, ring = tl.full((LINES,), 1, tl.int32), tl.zeros((LINES,), tl.int32)
    held = tl.zeros((), tl.int32)
    for i in tl.static_range(count):
        delay, ring = tl.where(line == i, delays[i] // 2, delay), tl.where(line == i, held, ring)
        held += delays[i] // 2
    oldest = (delay - time % delay) % delay
    is_line = line < count

    width = count + inputs
    system += (signal // system_repeat) % rows * (count + outputs) * width
    row = (signal // sos_repeat) % sos_rows * count * sections
    sos += 6 * row
    table += TABLE * row
    x += signal // repeat * inputs * row_stride  # rows repeat only where each signal has one
    y += signal * outputs * time
    lines += signal * held
    lines_after += signal * held
    before += signal * count * 2
    after += signal * count * 2
    section_stride = signals.to(tl.int64) * count * 2
    both = is_line[:, None] & is_line[None, :]
    feedback = tl.load(system + line[:, None] * width + line[None, :], mask=both, other=0.0)

    for at in range(0, tl.max(delay, 0), TIME):
        mask = is_line[:, None] & ((at + offset)[None, :] < delay[:, None])
        given = tl.load(lines + ring[:, None] + (at + offset)[None, :], mask=mask & HAS_LINES, other=0.0)
        place = wrapped(oldest[:, None] + (at + offset)[None, :], delay[:, None])
        tl.store(lines_after + ring[:, None] + place, given, mask=mask)
    for i in range(sections):
        each = tl.minimum(line, count - 1) * sections + i
        tabulate(table + TABLE * each, sos + 6 * each, 1.0, LOG_RUN, LOG_T, SHIFTED)
    tl.debug_barrier()

    for now in range(0, time, block):
        left = tl.minimum(time - now, block)
        there = offset < left
        samples = x + tl.cast(now, tl.int64) * time_stride + offset * time_stride
        mask = is_line[:, None] & there[None, :]
        place = ring[:, None] + wrapped(oldest[:, None] + offset[None, :], delay[:, None])
        r = tl.load(lines_after + place, mask=mask, other=0.0)

        weights, target = system + count * width, y + now + offset
        for _ in range(outputs):
            total = tl.sum(tl.load(weights + line, mask=is_line, other=0.0)[:, None] * r, 0)
            channel = samples
            for j in range(inputs):
                u = tl.load(channel, mask=there, other=0.0).to(tl.float64)
                total += tl.load(weights + count + j) * u
                channel += row_stride
            tl.store(target, total.to(y.dtype.element_ty), mask=there)
            weights += width
            target += time

        first, last = now == 0, now + block >= time
        if not FILTERED:
            s = mixed(feedback, r)
        elif FILTER_FIRST:
            r = filtered(
                r, left, first, last, table, sections, count, before, after, section_stride,
                LOG_T, LOG_RUN, SHIFTED, HAS_STATE,
            )  # fmt: skip
            s = mixed(feedback, r)
        else:
            s = filtered(
                mixed(feedback, r), left, first, last, table, sections, count, before, after, section_stride,
                LOG_T, LOG_RUN, SHIFTED, HAS_STATE,
            )  # fmt: skip
        for j in range(inputs):
            u = tl.load(samples, mask=there, other=0.0).to(tl.float64)
            samples += row_stride
            s += tl.load(system + line * width + count + j, mask=is_line, other=0.0)[:, None] * u[None, :]
        tl.debug_barrier()  # all have read the lines before one writes them
        tl.store(lines_after + place, s, mask=mask)
        oldest = wrapped(oldest + block, delay)
        tl.debug_barrier()  # other threads read lines and states next
