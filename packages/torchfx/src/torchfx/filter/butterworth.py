"""Butterworth filters: flat passband, -3 dB at the cutoff, then a slope of 6 dB per octave times the order."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from torchfx.design import butterworth
from torchfx.design.iir import BAND_TYPES, MOST_ORDER, BandType
from torchfx.filter.classical import ClassicalFilter
from torchfx.parameters import choice, count, sample_rate

__all__ = ["Butterworth", "HiButterworth", "LoButterworth"]


class Butterworth(ClassicalFilter):
    """Butterworth filter of any band.

    Equals `scipy.signal.butter(order, cutoff, btype, fs=fs)`.

    Examples:
        >>> Butterworth((300, 3400), order=4, btype="bandpass", fs=48_000).sos.shape
        torch.Size([4, 6])
    """

    order: int = count(default=2, high=MOST_ORDER, doc="slope in units of 6 dB per octave")
    fs: float | None = sample_rate(default=None)
    btype: BandType = choice(BAND_TYPES, default="lowpass", doc="which frequencies pass")

    order_function = "buttord"

    def design(self, rate: Any) -> Tensor:
        """Return the sections at a sample rate (Hz)."""
        return butterworth(self.cutoff, self.order, rate, self.btype)


class HiButterworth(Butterworth):
    """Butterworth high-pass.

    Equals `scipy.signal.butter(order, cutoff, "highpass", fs=fs, output="sos")`.

    Examples:
        >>> import torch
        >>> rumble_free = HiButterworth(80, order=4, fs=48_000)(torch.ones(1, 48_000))
        >>> bool(rumble_free[0, -1].abs() < 1e-6)  # 0 Hz is gone
        True
    """

    btype = "highpass"


class LoButterworth(Butterworth):
    """Butterworth low-pass.

    Equals `scipy.signal.butter(order, cutoff, "lowpass", fs=fs, output="sos")`.

    Examples:
        >>> import torch
        >>> settled = LoButterworth(1000, fs=48_000)(torch.ones(1, 48_000))
        >>> round(float(settled[0, -1]), 6)  # 0 Hz passes unchanged
        1.0
    """

    btype = "lowpass"
