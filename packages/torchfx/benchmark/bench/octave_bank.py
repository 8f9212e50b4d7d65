"""A third-octave bank over one signal: one call against a `scipy.signal.sosfilt` for each band."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.chains import Chain, Design

__all__ = ["OctaveBands", "banked", "deviation", "sosfilt_per_band"]

Samples = npt.NDArray[np.float32]


@dataclass(frozen=True)
class OctaveBands(Chain):
    """31 third octaves from 20 Hz to 20 kHz as Butterworth filters of fourth order; sections are (bands, 4, 6)."""

    filters: tuple[Design, ...] = ()
    fs: int = 48_000

    def sos(self) -> npt.NDArray[np.float64]:
        """Return the sections of each band, by SciPy."""
        from scipy import signal

        half = 10**0.05
        midbands = 1000 * 10 ** (np.arange(-17, 14) / 10)
        return np.stack(
            [signal.butter(4, [f / half, f * half], "bandpass", fs=self.fs, output="sos") for f in midbands]
        )

    def taps(self) -> None:
        """Return None: the filters are recursive."""

    def job(self, device: str = "cpu", channels: int = 1) -> dict[str, Any]:
        """Return what the works below want to know."""
        return {"fs": self.fs, "sos": self.sos()}

    def __str__(self) -> str:
        """Return the work in words."""
        return f"31 third-octave bands at {self.fs} Hz"


def banked(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
    """Return a call of one bank."""
    import torch

    from torchfx.filter import OctaveBank

    bank, signal = OctaveBank(3, 20, 20_000, fs=job["fs"]), torch.from_numpy(x)
    return lambda: bank(signal)


def sosfilt_per_band(job: dict[str, Any], x: Samples) -> Callable[[], Any]:
    """Return a loop of `scipy.signal.sosfilt` over the bands."""
    from scipy import signal

    return lambda: [signal.sosfilt(sos, x) for sos in job["sos"]]


def deviation(chain: Chain, x: Samples, y: npt.NDArray[Any]) -> float:
    """Return how far a result (1, bands, time) is from SciPy's in float64: the worst band, relative to its peak."""
    from scipy import signal

    sections, worst = chain.sos(), 0.0
    assert sections is not None
    for band, sos in enumerate(sections):
        exact = signal.sosfilt(sos, x[0].astype(np.float64))
        worst = max(worst, float(np.abs(y[0, band] - exact).max() / np.abs(exact).max()))
    return worst
