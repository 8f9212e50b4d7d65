"""Savitzky-Golay smoothing."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from torchfx.design.fir_bands import savitzky_golay_taps
from torchfx.filter.fir import DesignedResponse
from torchfx.parameters import count

__all__ = ["SavitzkyGolay"]


class SavitzkyGolay(DesignedResponse):
    """Fit a polynomial to the last samples and return its value, or a derivative, at the middle of these samples.

    The filter keeps peaks that a moving average would flatten. Its delay is (window_length - 1) / 2 samples. It equals
    `scipy.signal.savgol_coeffs(window_length, polyorder, deriv)` (A. Savitzky, M. J. E. Golay, Smoothing and
    differentiation of data by simplified least squares procedures, 1964).

    Examples:
        >>> import torch
        >>> line = torch.arange(20.0)
        >>> SavitzkyGolay(5, polyorder=2, deriv=1)(line)[10].round(decimals=4)  # the slope
        tensor(1.)
    """

    window_length: int = count(default=11, doc="samples that each polynomial is fitted to", draws=(3, 51))
    polyorder: int = count(default=2, doc="degree, less than window_length", low=0, draws=(0, 4))
    deriv: int = count(default=0, doc="which derivative, per sample", low=0, draws=(0, 2))

    def check_parameters(self) -> None:
        """Raise if the degree is too high for the length."""
        self.design(None)

    def design(self, rate: Any) -> Tensor:
        """Return the taps, which do not depend on the rate."""
        return savitzky_golay_taps(self.window_length, self.polyorder, self.deriv)
