"""Butterworth filters: flat passband, -3 dB at the cutoff, 6 dB per octave and order beyond it."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from torchfx.design import butterworth
from torchfx.design.iir import MOST_ORDER, BandType
from torchfx.filter.recursive import RecursiveFilter
from torchfx.parameters import Value, count, frequency, sample_rate

__all__ = ["HiButterworth", "LoButterworth"]


class Butterworth(RecursiveFilter):
    """A Butterworth filter; subclasses say which side passes."""

    cutoff: Value = frequency(doc="-3 dB frequency; an `nn.Parameter` is learned")
    order: int = count(default=2, high=MOST_ORDER, doc="slope in units of 6 dB per octave")
    fs: float | None = sample_rate(default=None)

    btype: ClassVar[BandType]

    def design(self, rate: float) -> Tensor:
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
