"""Calls on blocks so short that little but the call itself costs time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from operator import or_
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from torchfx.bench.contenders.torchfx_library import build
from torchfx.core.processor import FilterChain
from torchfx.core.wave import Wave
from torchfx.effect import Gain
from torchfx.realtime import Stream

__all__ = ["filter_call", "multiply", "piped_with_gains", "stream_call", "streamed"]

Samples = npt.NDArray[np.float32]


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
    """Return a preparation of a stream in blocks of so many samples, joined; the first call starts from rest."""

    def prepare(job: dict[str, Any], x: Samples) -> Callable[[], Tensor]:
        stream = Stream(reduce(or_, build(job, None)), job["fs"], len(x))
        blocks = torch.from_numpy(x).split(size, -1)
        return lambda: torch.cat([stream.process(block) for block in blocks], -1)

    return prepare


def piped_with_gains(gains: int) -> Callable[[dict[str, Any], Samples], Callable[[], Wave]]:
    """Return a preparation of `wave | chain` for the job's filters and an even number of gains that cancel out."""

    def prepare(job: dict[str, Any], x: Samples) -> Callable[[], Wave]:
        chain = FilterChain(*build(job, None), *(Gain(0.5 if i % 2 else 2.0) for i in range(gains)))
        wave = Wave(torch.from_numpy(x), job["fs"])
        return lambda: wave | chain

    return prepare
