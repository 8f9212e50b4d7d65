"""Whisper's log-mel features against the operators of PyTorch that they are usually made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from bench.chains import Chain, Design
from torchfx.design.mel import mel_filters
from torchfx.spectral import LogMel

__all__ = ["Features", "by_stft", "features", "powers_off"]

Samples = npt.NDArray[np.float32]
CHECKED_S = 30


@dataclass(frozen=True)
class Features(Chain):
    """A signal in each row."""

    filters: tuple[Design, ...] = ()
    fs: int = 16_000

    def job(self, device: str = "cpu", channels: int = 1) -> dict[str, Any]:
        """Return what the works below want to know."""
        return {"fs": self.fs}


def features(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
    """Return a call for all rows, without the step that reads the loudest band."""
    log_mel, samples = LogMel("whisper", normalize=False, fs=job["fs"]), torch.from_numpy(x)
    return lambda: log_mel(samples)


def by_stft(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
    """Return the same by torch.stft, a product of matrices, and a logarithm."""
    filters, samples = torch.from_numpy(_filters(job["fs"])).float(), torch.from_numpy(x)
    window = torch.hann_window(400)

    def run() -> torch.Tensor:
        spectra = torch.stft(samples, 400, 160, window=window, return_complex=True)[..., :-1]
        return ((filters @ spectra.abs().square()).clamp(min=1e-10).log10() + 4) / 4

    return run


def powers_off(chain: Chain, x: Samples, y: npt.NDArray[Any]) -> float:
    """Return how far bands' powers are from those in float64, relative to the largest: of the signals' beginnings."""
    begun = torch.from_numpy(x[:, : CHECKED_S * chain.fs]).double()
    window = torch.hann_window(400, dtype=torch.float64)
    spectra = torch.stft(begun, 400, 160, window=window, return_complex=True)[..., :-3]
    exact = torch.from_numpy(_filters(chain.fs)) @ spectra.abs().square()
    found = 10 ** (4 * torch.from_numpy(y[..., : exact.shape[-1]]).double() - 4)
    return float((found - exact).abs().max() / exact.max())


def _filters(fs: int) -> npt.NDArray[np.float64]:
    return mel_filters(201, fs, 80, norm="slaney", mel_scale="slaney")
