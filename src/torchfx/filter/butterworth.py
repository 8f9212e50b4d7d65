"""Butterworth filters: flat passband, -3 dB at the cutoff, 6 dB per octave and order beyond it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

from torch import Tensor

from torchfx.checks import whole_number
from torchfx.design import butterworth
from torchfx.design.iir import BandType, check_cutoff, is_learned
from torchfx.filter.iir import IIR, cutoff_text

__all__ = ["HiButterworth", "LoButterworth"]


class Butterworth(IIR):
    """Either Butterworth filter; the subclasses say which side passes.

    Args:
        cutoff: -3 dB frequency in Hz, in (0, fs/2). An `nn.Parameter` is learned.
        order: >= 1; the slope is 6 dB per octave times the order.
        fs: sample rate in Hz, or None to follow the wave's.

    Raises:
        ArgumentError: cutoff or order out of range (with fs unknown, the upper bound is checked at the call).
    """

    btype: ClassVar[BandType]

    def __init__(self, cutoff: float | Tensor, order: int = 2, fs: float | None = None) -> None:
        """Check and keep the parameters; the design happens when the rate is known."""
        super().__init__(fs)
        check_cutoff(cutoff, self.fs)
        self.cutoff = cutoff
        self.order = whole_number("order", order, 1)

    def _design(self, fs: float) -> Tensor:
        return butterworth(self.cutoff, self.order, fs, self.btype)

    def lti_key(self) -> Hashable | None:
        """Return what the design depends on; a learned cutoff is asked for every time."""
        return None if is_learned(self.cutoff) else (float(self.cutoff), self.order, self.fs, self._device)

    def extra_repr(self) -> str:
        """Return the parameters as text."""
        return f"cutoff={cutoff_text(self.cutoff)}, order={self.order}" + (f", fs={self.fs:g}" if self.fs else "")


class HiButterworth(Butterworth):
    """Butterworth high-pass; see `Butterworth` for the arguments.

    Equals `scipy.signal.butter(order, cutoff, "highpass", fs=fs, output="sos")`.

    Examples:
        >>> import torch
        >>> rumble_free = HiButterworth(80, order=4, fs=48_000)(torch.ones(1, 48_000))
        >>> bool(rumble_free[0, -1].abs() < 1e-6)  # 0 Hz is gone
        True
    """

    btype = "highpass"


class LoButterworth(Butterworth):
    """Butterworth low-pass; see `Butterworth` for the arguments.

    Equals `scipy.signal.butter(order, cutoff, "lowpass", fs=fs, output="sos")`.

    Examples:
        >>> import torch
        >>> settled = LoButterworth(1000, fs=48_000)(torch.ones(1, 48_000))
        >>> round(float(settled[0, -1]), 6)  # 0 Hz passes unchanged
        1.0
    """

    btype = "lowpass"
