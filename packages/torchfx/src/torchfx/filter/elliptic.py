"""Elliptic (Cauer) filters: the narrowest transition band for a given order, with ripple in both bands."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from torchfx.design import elliptic
from torchfx.design.iir import BAND_TYPES, MOST_ORDER, MOST_RIPPLE, BandType, Cutoff, check_levels
from torchfx.filter.classical import ClassicalFilter
from torchfx.parameters import choice, count, frequencies, number, sample_rate

__all__ = ["Elliptic", "HiElliptic", "LoElliptic"]


class Elliptic(ClassicalFilter):
    """Elliptic filter of any band.

    Equals `scipy.signal.ellip(order, ripple, attenuation, cutoff, btype, fs=fs)`.

    Examples:
        >>> Elliptic((300, 3400), order=3, btype="bandpass", fs=48_000).sos.shape
        torch.Size([3, 6])
    """

    cutoff: Cutoff = frequencies(
        doc="where the response last leaves the passband's ripple, or the two edges of a band; a tensor (...), "
        "(..., 2) for a band, is learned",
        learnable=True,
    )
    order: int = count(default=4, high=MOST_ORDER)
    ripple: float = number(
        default=0.5, doc="peak-to-peak ripple of the passband", low=0.0, open_low=True, high=MOST_RIPPLE, unit="dB",
        draws=(0.05, 3.0), learnable=False,
    )  # fmt: skip
    attenuation: float = number(
        default=40.0, doc="minimum stop-band attenuation; more than the ripple", low=0.0, open_low=True,
        high=MOST_RIPPLE, unit="dB", draws=(20.0, 90.0), learnable=False,
    )  # fmt: skip
    fs: float | None = sample_rate(default=None)
    btype: BandType = choice(BAND_TYPES, default="lowpass", doc="which frequencies pass")

    order_function = "ellipord"

    def check_parameters(self) -> None:
        """Raise if the edges or the levels are inconsistent."""
        super().check_parameters()
        check_levels(self.ripple, self.attenuation)

    def design(self, rate: Any) -> Tensor:
        """Return the sections at a sample rate (Hz)."""
        return elliptic(self.cutoff, self.order, self.ripple, self.attenuation, rate, self.btype)


class HiElliptic(Elliptic):
    """Elliptic high-pass.

    Examples:
        >>> HiElliptic(60, fs=44_100)
        HiElliptic(cutoff=60, order=4, ripple=0.5, attenuation=40, fs=44100)
    """

    btype = "highpass"


class LoElliptic(Elliptic):
    """Elliptic low-pass.

    Examples:
        >>> LoElliptic(12_000, order=6, attenuation=80)
        LoElliptic(cutoff=12000, order=6, ripple=0.5, attenuation=80)
    """

    btype = "lowpass"
