"""Chebyshev type I filters: steeper than Butterworth for the same order, at the price of ripple in the passband."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from torchfx.design import chebyshev1
from torchfx.design.iir import MOST_ORDER, MOST_RIPPLE, BandType
from torchfx.filter.recursive import RecursiveFilter
from torchfx.parameters import Value, count, frequency, number, sample_rate

__all__ = ["HiChebyshev1", "LoChebyshev1"]


class Chebyshev1(RecursiveFilter):
    """A Chebyshev type I filter; subclasses say which side passes."""

    cutoff: Value = frequency(doc="where the response last leaves the ripple band; an `nn.Parameter` is learned")
    order: int = count(default=2, high=MOST_ORDER)
    ripple: float = number(
        default=0.5, doc="peak-to-peak ripple of the passband", low=0.0, open_low=True, high=MOST_RIPPLE, unit="dB",
        draws=(0.05, 3.0), learnable=False,
    )  # fmt: skip
    fs: float | None = sample_rate(default=None)

    btype: ClassVar[BandType]

    def design(self, rate: float) -> Tensor:
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
