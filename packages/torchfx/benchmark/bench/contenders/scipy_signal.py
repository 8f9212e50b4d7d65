"""SciPy: one call per filter, as documents show it, and the best single call there is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

NEEDS = ("scipy",)
DEVICES = ("cpu",)

BLOCK = 1 << 25
"""SciPy turns float32 into float64; longer signals go through it a few channels at a time and are kept as float32."""

Run = Callable[[Any], Any]


def in_bounded_memory(filtered: Run, x: Any) -> Any:
    """Filter (channels, time) in one call, or in blocks of channels where the float64 copies would grow too large."""
    if x.size <= BLOCK:
        return filtered(x)
    y = np.empty_like(x)
    step = max(1, BLOCK // x.shape[-1])
    for first in range(0, len(x), step):
        y[first : first + step] = filtered(x[first : first + step])
    return y


def lfilter(job: dict[str, Any], x: Any) -> Callable[[], Any]:
    """Return one `lfilter` call after the other."""
    from scipy import signal

    coefficients = [(np.array(each["b"]), np.array(each["a"])) for each in job["filters"]]

    def chain(part: Any) -> Any:
        for b, a in coefficients:
            part = signal.lfilter(b, a, part)
        return part

    return partial(in_bounded_memory, chain, x)


def sosfilt(job: dict[str, Any], x: Any) -> Callable[[], Any]:
    """Return one `sosfilt` call over all sections."""
    from scipy import signal

    return partial(in_bounded_memory, partial(signal.sosfilt, np.array(job["sos"])), x)


def oaconvolve(job: dict[str, Any], x: Any) -> Callable[[], Any]:
    """Return one `oaconvolve` call with all filters' taps, which were convolved beforehand."""
    from scipy import signal

    taps = np.array(job["taps"])[None]

    def convolved(part: Any) -> Any:
        return signal.oaconvolve(part, taps, axes=-1)[:, : part.shape[-1]]

    return partial(in_bounded_memory, convolved, x)


def sosfilt_stream(job: dict[str, Any]) -> Run:
    """Return `sosfilt` with the state carried from block to block."""
    from scipy import signal

    sos = np.array(job["sos"])
    state = np.zeros((len(sos), job["channels"], 2))

    def step(block: Any) -> Any:
        nonlocal state
        y, state = signal.sosfilt(sos, block, zi=state)
        return y

    return step


CONTENDERS = {"scipy lfilter": lfilter, "scipy sosfilt": sosfilt, "scipy oaconvolve": oaconvolve}
STREAMS = {"scipy sosfilt": sosfilt_stream}
