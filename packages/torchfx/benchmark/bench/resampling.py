"""Resampling against soxr, and against the windowed sinc by one convolution that PyTorch's users know."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.chains import Chain, Design

__all__ = ["Resampling", "resampled", "soxr_hq", "windowed_sinc"]

Samples = npt.NDArray[np.float32]

ZEROS, ROLLOFF, BETA = 64, 0.9475937167399596, 14.769656459379492
"""Zero crossings, pass band and Kaiser window of resampy's "kaiser_best", which torchaudio's documentation quotes."""


@dataclass(frozen=True)
class Resampling(Chain):
    """One change of the sample rate, at HQ."""

    filters: tuple[Design, ...] = ()
    rate: int = 48_000

    def exact_blocks(self, x: Samples) -> Iterator[tuple[int, int, npt.NDArray[np.float64]]]:
        """Yield (channel, 0, samples) of the same low-passes run by SciPy in float64, with silence before and after."""
        from scipy import signal

        from torchfx.design.resampling import low_pass_phases
        from torchfx.filter import Resample

        ratio = Resample(self.rate, fs=self.fs).ratio(self.fs)
        whole = ratio.down * ratio.divided
        silence = math.ceil(ratio.reach / ratio.up / whole) * whole
        skipped = silence // ratio.down * ratio.up
        for channel, samples in enumerate(x):
            y = np.pad(samples.astype(np.float64), silence)
            for stage in ratio.stages:
                taps = low_pass_phases(stage.up, stage.cutoff, stage.reach, stage.attenuation).numpy().T.reshape(-1)
                window: Any = taps[: 2 * stage.reach + 1] / stage.up  # `resample_poly` multiplies it by `up`
                y = signal.resample_poly(y, stage.up, stage.down, window=window)
            yield channel, 0, y[skipped:][: math.ceil(len(samples) * ratio.up / ratio.down)]

    def job(self, device: str = "cpu", channels: int = 1) -> dict[str, Any]:
        """Return what the works below want to know."""
        return {"fs": self.fs, "rate": self.rate}

    def __str__(self) -> str:
        """Return the work in words."""
        return f"{self.fs} to {self.rate} Hz"


def resampled(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
    """Return a call of `Resample` at HQ."""
    import torch

    from torchfx.filter import Resample

    module, samples = Resample(job["rate"], fs=job["fs"]), torch.from_numpy(x)
    return lambda: module(samples)


def soxr_hq(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
    """Return a call of `soxr.resample` at HQ, which takes frames first; it runs on one thread."""
    import soxr

    frames = np.ascontiguousarray(x.T)
    return lambda: soxr.resample(frames, job["fs"], job["rate"], quality="HQ")


def windowed_sinc(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
    """Return one strided `conv1d` with a filter for each phase of the output, designed beforehand."""
    import torch

    common = math.gcd(job["fs"], job["rate"])
    up, down = job["rate"] // common, job["fs"] // common
    band = min(up, down) * ROLLOFF
    width = math.ceil(ZEROS * down / band)
    t = np.arange(-width, width + down) / down - np.arange(up)[:, None] / up
    t = np.clip(t * band, -ZEROS, ZEROS)
    window = np.i0(BETA * np.sqrt(1 - (t / ZEROS) ** 2)) / np.i0(BETA)
    kernels = torch.from_numpy(np.sinc(t) * window * band / down).float()[:, None]
    samples, length = torch.from_numpy(x)[:, None], math.ceil(x.shape[-1] * up / down)

    def run() -> Any:
        padded = torch.nn.functional.pad(samples, (width, width + down))
        return torch.nn.functional.conv1d(padded, kernels, stride=down).transpose(1, 2).flatten(1)[:, :length]

    return run
