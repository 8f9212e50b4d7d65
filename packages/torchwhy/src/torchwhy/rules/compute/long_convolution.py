"""Convolutions with long kernels, for which a Fourier transform takes less time."""

from __future__ import annotations

from collections.abc import Iterator
from math import log2, prod
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.compute.separable_convolution import outer_kernels
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import ForwardPass, backward_of, forward_pass, work_of
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.meaning.arithmetic import CONVOLVING
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["long_convolution"]

SLOWER: Final = 10.0
"""A convolution computes this many times more operations per second than an FFT, because its data stay in the
caches."""

AHEAD: Final = 10
"""The result of a convolution is read at most this number of operators later, by an operator that shows its length."""


@rule("D24", "long-convolution", source="operations by shapes: K per sample against log2 of the length", frees="device")
def long_convolution(trace: Trace, *, taps: int = 128, gain: float = 2.0, share: float = 0.05) -> Iterator[Finding]:
    """A convolution has a long kernel, for which an FFT takes less time.

    Sees: a convolution with a kernel of 128 or more elements per channel whose multiplications, by its shapes, are 20
    times the operations of the transforms that compute the same: an FFT works at about a tenth of a convolution's
    speed. It takes 5% of the window or more, with its backward pass. The length of its result, so the stride, is that
    of a tensor that one of the next ten operators reads.

    Costs: K multiplications for each sample, where transforms take some log2 of the length.

    Fix: `torch.fft.rfft` of signal and kernel, both padded to the sum of their lengths, a product, `irfft`; for long
    signals in blocks (overlap-add).

    Known problems: sums are added in another order, so results differ by rounding. Transposed convolutions are left
    out where their result is longer than their input.
    """
    program, window = trace.derived(forward_pass), trace.derived(steady_window)
    places = np.flatnonzero(trace.events.are(CONVOLVING, program.rows)).tolist()
    separable = outer_kernels(trace, program, 2)
    gains = {row: _gain(program, i, taps) for i in places if (row := int(program.rows[i])) not in separable}
    rows = np.array([row for row, faster in gains.items() if faster >= gain], np.int32)
    when = work_of(trace, np.concatenate((rows, backward_of(trace, rows))))
    part = window.share(when)
    if not len(rows) or part < share:
        return
    longest = max(
        (program.shapes[i][1] for i in places if gains.get(int(program.rows[i]), 0) >= gain), key=lambda k: prod(k[2:])
    )
    saved = 1 - float(np.average([1 / gains[row] for row in rows.tolist()], weights=trace.events.dur[rows]))
    yield Finding(
        title=f"A convolution with a kernel of {' x '.join(f'{size:,}' for size in longest[2:])} takes {percent(part)} "
        "of the time",
        confidence="medium",
        time_us=when.total / 1000 * saved,
        stretches=when,
        window=window,
        evidence=evidence(trace, rows),
        cause="Each output is a sum over the whole kernel. An FFT takes a small part of these operations.",
        fix="Convolve by FFT: irfft(rfft(x, n) * rfft(h, n), n) with n of at least both lengths together, and the "
        "kernel reversed, as conv1d correlates.",
    )


def _gain(program: ForwardPass, i: int, taps: int) -> float:
    """How many times faster an FFT is; 0 where the shapes don't show it."""
    if len(program.shapes[i]) < 2:
        return 0.0
    signal, kernel = program.shapes[i][:2]
    if len(signal) < 3 or len(kernel) != len(signal) or prod(kernel[2:]) < taps:
        return 0.0
    batch, outputs, inputs = signal[0], kernel[0], kernel[1]
    following = (shape for taken in program.shapes[i + 1 : i + 1 + AHEAD] for shape in taken)
    result = next((one for one in following if len(one) == len(signal) and one[:2] == (batch, outputs)), None)
    if result is None or any(out > size for out, size in zip(result[2:], signal[2:], strict=True)):
        return 0.0
    direct = 2.0 * batch * outputs * inputs * prod(kernel[2:]) * prod(result[2:])
    points = prod(1 << (size - 1).bit_length() for size in signal[2:])
    transforms = 2.5 * points * log2(points) * (batch * signal[1] + outputs * inputs + batch * outputs)
    return direct / SLOWER / (transforms + 4.0 * points * batch * outputs * inputs)
