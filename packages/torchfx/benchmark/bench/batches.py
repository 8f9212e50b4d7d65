"""Many short stereo signals of different lengths: `batch_process` against a loop of `wave | chain`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.chains import Chain
from bench.contenders.torchfx_library import ready
from bench.exact import deviation

__all__ = ["by_batch_process", "by_loop", "deviation_of_longest"]

Samples = npt.NDArray[np.float32]


def by_batch_process(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
    """Return a call of `batch_process`, which gives the longest signal's result."""
    from torchfx import batch_process

    waves, chain = _waves(job, x), ready(job)
    return lambda: batch_process(waves, chain)[-1].ys


def by_loop(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
    """Return a loop that gives the longest signal's result."""
    waves, chain = _waves(job, x), ready(job)
    return lambda: [wave | chain for wave in waves][-1].ys


def deviation_of_longest(chain: Chain, x: Samples, y: npt.NDArray[Any]) -> float:
    """Return how far the longest signal's result is from SciPy's in float64."""
    return deviation(chain, x[-2:], lambda channel, start, stop: y[channel, start:stop])


def _waves(job: dict[str, Any], x: Samples) -> list[Any]:
    """Return two rows each as a wave, the first half as long as the last."""
    import torch

    from torchfx import Wave

    pairs = torch.from_numpy(x).unflatten(0, (-1, 2))
    lengths = np.linspace(x.shape[-1] // 2, x.shape[-1], len(pairs)).round().astype(int).tolist()
    return [Wave(pair[:, :length].clone(), job["fs"]) for pair, length in zip(pairs, lengths, strict=True)]
