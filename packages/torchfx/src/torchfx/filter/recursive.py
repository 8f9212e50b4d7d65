"""Base class of IIR filters; a subclass implements `design`."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor

from torchfx.design.recording import recorded
from torchfx.filter.filter import Filter
from torchfx.plan import LTI
from torchfx.plan.lti import convolve

__all__ = ["RecursiveFilter", "transfer_function"]


class RecursiveFilter(Filter):
    """A recursive (IIR) filter, computed as a cascade of second-order sections in float64.

    A subclass declares its parameters and implements `design`. `SOS` and `IIR` take given coefficients.
    """

    @abstractmethod
    def design(self, rate: Any) -> Tensor:
        """Return the sections at a sample rate (Hz): float64, (..., sections, 6), rows b0 b1 b2 a0 a1 a2."""

    def lti(self, rate: Any) -> LTI:
        """Return the filter as sections."""
        return LTI(sos=recorded(self.design, rate))

    @property
    def sos(self) -> Tensor:
        """Second-order sections, float64, (..., sections, 6), rows b0 b1 b2 a0 a1 a2."""
        return self.design(self._own_rate()).to(self.device or "cpu").clone()

    @property
    def b(self) -> Tensor:
        """Numerator of the whole transfer function, float64, (..., order + 1). Read-only: filtering uses `sos`."""
        return transfer_function(self.sos)[0]

    @property
    def a(self) -> Tensor:
        """Denominator of the whole transfer function, float64, (..., order + 1). Read-only."""
        return transfer_function(self.sos)[1]


def transfer_function(sos: Tensor) -> tuple[Tensor, Tensor]:
    """Return the numerator and denominator, (..., order + 1) each, of sections (..., sections, 6)."""
    b, a = sos.new_ones(1), sos.new_ones(1)
    for row in sos.unbind(-2):
        b, a = convolve(b, row[..., :3]), convolve(a, row[..., 3:])
    # A section of first order ends both polynomials in a zero that does not belong to the filter's coefficients.
    either = ((b != 0) | (a != 0)).reshape(-1, b.shape[-1]).any(0)
    used = int(torch.nonzero(either).max()) + 1
    return b[..., :used], a[..., :used]
