"""The Hilbert transform."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from torchfx.design.fir_bands import hilbert_taps
from torchfx.design.firwin import Window
from torchfx.filter.fir import DesignedResponse
from torchfx.parameters import count, window

__all__ = ["Hilbert"]


class Hilbert(DesignedResponse):
    """Shift all frequencies by -90 degrees.

    The input, delayed by the same time, and the output form the analytic signal.

    The taps are the windowed ideal response; the delay is (num_taps - 1) / 2 samples. With an odd number of taps every
    other tap is 0, and the gain falls towards 0 Hz and fs/2; with an even number it falls towards 0 Hz only.

    Examples:
        >>> import math, torch
        >>> turns = 2 * math.pi * 0.1 * torch.arange(200)
        >>> y = Hilbert(65)(torch.cos(turns))
        >>> bool((y[100:] - torch.sin(turns[100 - 32 : 200 - 32])).abs().max() < 0.01)
        True
    """

    num_taps: int = count(default=65, doc="length", low=2, draws=(2, 200))
    window: Window = window(default="hamming")

    def check_parameters(self) -> None:
        """Raise if SciPy does not know the window."""
        self.design(None)

    def design(self, rate: Any) -> Tensor:
        """Return the taps, which do not depend on the rate."""
        return hilbert_taps(self.num_taps, self.window)
