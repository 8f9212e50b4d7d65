"""Bessel filters: hardly any overshoot in the step response, from analogue prototypes of maximally flat group delay."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from torchfx.design import bessel
from torchfx.design.iir import BAND_TYPES, BESSEL_NORMS, MOST_BESSEL, BandType, BesselNorm, Cutoff
from torchfx.filter.classical import ClassicalFilter
from torchfx.parameters import choice, count, frequencies, sample_rate

__all__ = ["Bessel", "HiBessel", "LoBessel"]


class Bessel(ClassicalFilter):
    """Bessel filter of any band.

    Equals `scipy.signal.bessel(order, cutoff, btype, norm=norm, fs=fs)`.

    Examples:
        >>> Bessel((300, 3400), order=3, btype="bandpass", fs=48_000).sos.shape
        torch.Size([3, 6])
    """

    cutoff: Cutoff = frequencies(
        doc="the frequency defined by norm, or the two edges of a band; a tensor (...), (..., 2) for a band, is "
        "learned",
        learnable=True,
    )
    order: int = count(default=2, high=MOST_BESSEL)
    norm: BesselNorm = choice(
        BESSEL_NORMS, default="phase",
        doc="what holds at the cutoff: the phase of a Butterworth filter, a delay of 1/cutoff at 0 Hz, or -3 dB (mag)",
    )  # fmt: skip
    fs: float | None = sample_rate(default=None)
    btype: BandType = choice(BAND_TYPES, default="lowpass", doc="which frequencies pass")

    def design(self, rate: Any) -> Tensor:
        """Return the sections at a sample rate (Hz)."""
        return bessel(self.cutoff, self.order, rate, self.btype, self.norm)


class HiBessel(Bessel):
    """Bessel high-pass.

    Examples:
        >>> HiBessel(60, fs=44_100)
        HiBessel(cutoff=60, order=2, fs=44100)
    """

    btype = "highpass"


class LoBessel(Bessel):
    """Bessel low-pass.

    Examples:
        >>> LoBessel(12_000, order=4, norm="mag")
        LoBessel(cutoff=12000, order=4, norm='mag')
    """

    btype = "lowpass"
