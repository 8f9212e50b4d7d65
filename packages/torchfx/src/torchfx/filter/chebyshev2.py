"""Chebyshev type II filters: flat passband, equiripple stopband that begins at the cutoff."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from torchfx.design import chebyshev2
from torchfx.design.iir import BAND_TYPES, MOST_ORDER, MOST_RIPPLE, BandType, Cutoff
from torchfx.filter.classical import ClassicalFilter
from torchfx.parameters import choice, count, frequencies, number, sample_rate

__all__ = ["Chebyshev2", "HiChebyshev2", "LoChebyshev2"]


class Chebyshev2(ClassicalFilter):
    """Chebyshev type II filter of any band.

    Equals `scipy.signal.cheby2(order, attenuation, cutoff, btype, fs=fs)`.

    Examples:
        >>> Chebyshev2((45, 55), order=3, btype="bandstop", fs=48_000).sos.shape
        torch.Size([3, 6])
    """

    cutoff: Cutoff = frequencies(
        doc="where the stopband begins, or its two edges; a tensor (...), (..., 2) for a band, is learned",
        learnable=True,
    )
    order: int = count(default=4, high=MOST_ORDER)
    attenuation: float = number(
        default=40.0, doc="minimum stop-band attenuation", low=0.0, open_low=True, high=MOST_RIPPLE, unit="dB",
        draws=(20.0, 90.0), learnable=False,
    )  # fmt: skip
    fs: float | None = sample_rate(default=None)
    btype: BandType = choice(BAND_TYPES, default="lowpass", doc="which frequencies pass")

    order_function = "cheb2ord"

    def design(self, rate: Any) -> Tensor:
        """Return the sections at a sample rate (Hz)."""
        return chebyshev2(self.cutoff, self.order, self.attenuation, rate, self.btype)


class HiChebyshev2(Chebyshev2):
    """Chebyshev type II high-pass.

    Examples:
        >>> HiChebyshev2(60, fs=44_100)
        HiChebyshev2(cutoff=60, order=4, attenuation=40, fs=44100)
    """

    btype = "highpass"


class LoChebyshev2(Chebyshev2):
    """Chebyshev type II low-pass.

    Examples:
        >>> LoChebyshev2(12_000, attenuation=60)
        LoChebyshev2(cutoff=12000, order=4, attenuation=60)
    """

    btype = "lowpass"
