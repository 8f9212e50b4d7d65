"""Effects and loudness against pedalboard and pyloudnorm, where they are installed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from torchfx import loudness, spec
from torchfx.bench.chains import Chain, Design
from torchfx.core.wave import Wave

__all__ = ["Effect", "by_pedalboard", "by_pyloudnorm", "loudness_of", "loudness_off", "off", "processed"]

Samples = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Effect(Chain):
    """One effect.

    Attributes:
        text: as on the command line; "" for a measurement.
        peer: pedalboard's class and its arguments.
    """

    filters: tuple[Design, ...] = ()
    fs: int = 48_000
    text: str = ""
    peer: tuple[Any, ...] = ()

    def job(self, device: str = "cpu", channels: int = 1) -> dict[str, Any]:
        """Return what the works below want to know."""
        return {"fs": self.fs, "text": self.text, "peer": self.peer}


def processed(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
    """Return `wave | effect`."""
    wave, module = Wave(x, job["fs"]), spec.build(job["text"])
    return lambda: (wave | module).ys


def off(effect: Chain, x: Samples, y: npt.NDArray[Any]) -> float:
    """Return the largest difference from the float64 result, relative to its peak."""
    assert isinstance(effect, Effect)
    exact = (Wave(x.astype(np.float64), effect.fs) | spec.build(effect.text)).ys.numpy()
    return float(np.abs(y - exact).max() / np.abs(exact).max())


def by_pedalboard(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
    """Return a call of pedalboard's effect."""
    import pedalboard

    name, *arguments = job["peer"]
    effect = getattr(pedalboard, name)(*arguments)
    return lambda: effect(x, job["fs"])


def loudness_of(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
    """Return a measurement of the integrated loudness."""
    samples = torch.from_numpy(x)
    return lambda: loudness.integrated(samples, job["fs"])


def by_pyloudnorm(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
    """Return the same by pyloudnorm, which takes frames first, with the standard's filters."""
    import pyloudnorm

    meter, frames = pyloudnorm.Meter(job["fs"], filter_class="DeMan"), np.ascontiguousarray(x.T)
    return lambda: meter.integrated_loudness(frames)


def loudness_off(effect: Chain, x: Samples, y: npt.NDArray[Any]) -> float:
    """Return the difference from the float64 result, relative to it."""
    exact = float(loudness.integrated(torch.from_numpy(x).double(), effect.fs))
    return abs(float(y) - exact) / abs(exact)
