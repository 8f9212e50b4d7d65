"""All-pole filters of more than two coefficients as a Triton kernel; state_space/kernels.py has that for fewer."""

from __future__ import annotations

import triton
import triton.language as tl

__all__ = ["sequential"]


@triton.jit(do_not_specialize=["repeat", "order", "times", "rows", "a_repeat", "channels"])
def sequential(
    x, row_stride, time_stride, repeat, y, a, order, times, rows, a_repeat, before, after, channels, time,
    HAS_STATE: tl.constexpr, CHANNELS: tl.constexpr, N: tl.constexpr,
):  # fmt: skip
    """Run whole channels, sample by sample, CHANNELS in a program.

    Their past outputs lie in a ring of N >= order places: the output of sample t in place t mod N.
    """
    channel = tl.program_id(0).to(tl.int64) * CHANNELS + tl.arange(0, CHANNELS)
    there = channel < channels
    channel = tl.minimum(channel, channels - 1)
    place = tl.arange(0, N)
    x += channel // repeat * row_stride
    y += channel * time
    a += ((channel // a_repeat) % rows * times * order)[:, None]
    state = (channel * order)[:, None]
    past = tl.zeros((CHANNELS, N), tl.float64)
    if HAS_STATE:
        lag = (N - 1 - place)[None, :]
        past = tl.load(before + state + lag, mask=lag < order, other=0.0)
    step = tl.where(times > 1, order, 0)
    for t in range(time):
        lag = ((t - 1 - place) & (N - 1))[None, :]
        weights = tl.load(a + lag, mask=lag < order, other=0.0).to(tl.float64)
        out = tl.load(x).to(tl.float64) - tl.sum(weights * past, 1)
        past = tl.where(((t & (N - 1)) == place)[None, :], out[:, None], past)
        tl.store(y, out.to(y.dtype.element_ty), mask=there)
        a += step
        x += time_stride
        y += 1
    lag = ((time - 1 - place) & (N - 1))[None, :]
    tl.store(after + state + lag, past, mask=there[:, None] & (lag < order))
