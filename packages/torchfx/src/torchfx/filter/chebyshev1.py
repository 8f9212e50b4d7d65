"""Chebyshev type I filters: steeper than Butterworth of the same order, with ripple in the passband."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from torchfx.design import chebyshev1
from torchfx.design.iir import BAND_TYPES, MOST_ORDER, MOST_RIPPLE, BandType, Cutoff
from torchfx.filter.classical import ClassicalFilter
from torchfx.parameters import choice, count, frequencies, number, sample_rate

__all__ = ["Chebyshev1", "HiChebyshev1", "LoChebyshev1"]


class Chebyshev1(ClassicalFilter):
    """Chebyshev type I filter of any band.

    Equals `scipy.signal.cheby1(order, ripple, cutoff, btype, fs=fs)`.

    Examples:
        >>> Chebyshev1((300, 3400), order=3, ripple=1, btype="bandpass", fs=48_000).sos.shape
        torch.Size([3, 6])
    """

    cutoff: Cutoff = frequencies(
        doc="where the response last leaves the ripple band, or the two edges of a band; a tensor (...), (..., 2) for "
        "a band, is learned",
        learnable=True,
    )
    order: int = count(default=2, high=MOST_ORDER)
    ripple: float = number(
        default=0.5, doc="peak-to-peak ripple of the passband", low=0.0, open_low=True, high=MOST_RIPPLE, unit="dB",
        draws=(0.05, 3.0), learnable=False,
    )  # fmt: skip
    fs: float | None = sample_rate(default=None)
    btype: BandType = choice(BAND_TYPES, default="lowpass", doc="which frequencies pass")

    order_function = "cheb1ord"

    def design(self, rate: Any) -> Tensor:
        """Return the sections at a sample rate (Hz)."""
        return chebyshev1(self.cutoff, self.order, self.ripple, rate, self.btype)


class HiChebyshev1(Chebyshev1):
    """Chebyshev type I high-pass.

    Equals `scipy.signal.cheby1(order, ripple, cutoff, "highpass", fs=fs, output="sos")`.

    Examples:
        >>> HiChebyshev1(60, fs=44_100).sos.shape
        torch.Size([1, 6])
    """

    btype = "highpass"


class LoChebyshev1(Chebyshev1):
    """Chebyshev type I low-pass.

    Equals `scipy.signal.cheby1(order, ripple, cutoff, "lowpass", fs=fs, output="sos")`.

    Examples:
        >>> LoChebyshev1(12_000, order=5, ripple=0.1, fs=44_100).sos.shape
        torch.Size([3, 6])
    """

    btype = "lowpass"
