"""Chebyshev type I filters: steeper than Butterworth for the same order, at the price of ripple in the passband."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

from torch import Tensor

from torchfx.checks import whole_number
from torchfx.design import chebyshev1
from torchfx.design.iir import BandType, check_cutoff, check_ripple, is_learned
from torchfx.filter.iir import IIR, cutoff_text

__all__ = ["HiChebyshev1", "LoChebyshev1"]


class Chebyshev1(IIR):
    """Either Chebyshev type I filter; the subclasses say which side passes.

    Args:
        cutoff: frequency in Hz where the response last leaves the ripple band (-ripple dB), in (0, fs/2). An
            `nn.Parameter` is learned.
        order: >= 1.
        ripple: peak-to-peak ripple of the passband in dB, in (0, 3000].
        fs: sample rate in Hz, or None to follow the wave's.

    Raises:
        ArgumentError: a parameter out of range (with fs unknown, the cutoff's upper bound is checked at the call).
    """

    btype: ClassVar[BandType]

    def __init__(self, cutoff: float | Tensor, order: int = 2, ripple: float = 0.5, fs: float | None = None) -> None:
        """Check and keep the parameters; the design happens when the rate is known."""
        super().__init__(fs)
        check_cutoff(cutoff, self.fs)
        self.cutoff = cutoff
        self.order = whole_number("order", order, 1)
        self.ripple = check_ripple(ripple)

    def _design(self, fs: float) -> Tensor:
        return chebyshev1(self.cutoff, self.order, self.ripple, fs, self.btype)

    def lti_key(self) -> Hashable | None:
        """Return what the design depends on; a learned cutoff is asked for every time."""
        return None if is_learned(self.cutoff) else (float(self.cutoff), self.order, self.ripple, self.fs, self._device)

    def extra_repr(self) -> str:
        """Return the parameters as text."""
        text = f"cutoff={cutoff_text(self.cutoff)}, order={self.order}, ripple={self.ripple:g}"
        return text + (f", fs={self.fs:g}" if self.fs else "")


class HiChebyshev1(Chebyshev1):
    """Chebyshev type I high-pass; see `Chebyshev1` for the arguments.

    Equals `scipy.signal.cheby1(order, ripple, cutoff, "highpass", fs=fs, output="sos")`.

    Examples:
        >>> HiChebyshev1(60, fs=44_100).sos.shape
        torch.Size([1, 6])
    """

    btype = "highpass"


class LoChebyshev1(Chebyshev1):
    """Chebyshev type I low-pass; see `Chebyshev1` for the arguments.

    Equals `scipy.signal.cheby1(order, ripple, cutoff, "lowpass", fs=fs, output="sos")`.

    Examples:
        >>> LoChebyshev1(12_000, order=5, ripple=0.1, fs=44_100).sos.shape
        torch.Size([3, 6])
    """

    btype = "lowpass"
