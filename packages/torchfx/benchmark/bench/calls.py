"""Calls on blocks so short that little but the call itself costs time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from itertools import cycle
from operator import or_
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from bench.contenders.torchfx_library import build
from torchfx.core.processor import FilterChain
from torchfx.core.wave import Wave
from torchfx.effect import Gain
from torchfx.realtime import Stream

__all__ = [
    "filter_call",
    "moving_cutoff",
    "multiply",
    "piped_with_gains",
    "scipy_moving_cutoff",
    "stream_call",
    "streamed",
]

Samples = npt.NDArray[np.float32]

MOVES = (1.0, 1.01, 1.02, 1.03, 1.02, 1.01)
"""Factors of the cutoff from block to block."""


def multiply(job: dict[str, Any], x: Samples) -> Callable[[], Tensor]:
    """Return `torch.mul(x, 2)`, output allocated in the call."""
    return partial(torch.mul, torch.from_numpy(x), 2)


def filter_call(job: dict[str, Any], x: Samples) -> Callable[[], Tensor]:
    """Return `filter(x)` for the job's only filter."""
    (module,) = build(job, job["fs"])
    return partial(module, torch.from_numpy(x))


def stream_call(job: dict[str, Any], x: Samples) -> Callable[[], Tensor]:
    """Return `Stream.process(x)`: the first call starts from rest, later ones continue."""
    stream = Stream(reduce(or_, build(job, None)), job["fs"], len(x))
    return partial(stream.process, torch.from_numpy(x))


def streamed(size: int) -> Callable[[dict[str, Any], Samples], Callable[[], Tensor]]:
    """Return a preparation of a stream in blocks of this number of samples, joined; the first call starts from rest."""

    def prepare(job: dict[str, Any], x: Samples) -> Callable[[], Tensor]:
        stream = Stream(reduce(or_, build(job, None)), job["fs"], len(x))
        blocks = torch.from_numpy(x).split(size, -1)
        return lambda: torch.cat([stream.process(block) for block in blocks], -1)

    return prepare


def moving_cutoff(job: dict[str, Any], x: Samples) -> Callable[[], Tensor]:
    """Return a stream's next block with the only filter's cutoff assigned before it, another one each time."""
    (module,) = build(job, None)
    stream, samples = Stream(module, job["fs"], len(x)), torch.from_numpy(x)
    cutoffs = cycle([module.cutoff * factor for factor in MOVES])

    def run() -> Tensor:
        module.cutoff = next(cutoffs)
        return stream.process(samples)

    return run


def scipy_moving_cutoff(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
    """Return the same with SciPy's `butter` and `sosfilt`, which keeps its state as it is."""
    from scipy import signal

    (design,) = job["filters"]
    state = np.zeros((-(-design["size"] // 2), len(x), 2))
    cutoffs = cycle([design["cutoff"] * factor for factor in MOVES])

    def run() -> Any:
        nonlocal state
        sos = signal.butter(design["size"], next(cutoffs), design["btype"], fs=job["fs"], output="sos")
        y, state = signal.sosfilt(sos, x, zi=state)
        return y

    return run


def piped_with_gains(gains: int) -> Callable[[dict[str, Any], Samples], Callable[[], Wave]]:
    """Return a preparation of `wave | chain` for the job's filters and an even number of gains that cancel out."""

    def prepare(job: dict[str, Any], x: Samples) -> Callable[[], Wave]:
        chain = FilterChain(*build(job, None), *(Gain(0.5 if i % 2 else 2.0) for i in range(gains)))
        wave = Wave(torch.from_numpy(x), job["fs"])
        return lambda: wave | chain

    return prepare
