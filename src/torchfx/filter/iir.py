"""Recursive filters: whoever gives second-order sections is one."""

from __future__ import annotations

from abc import abstractmethod

import torch
from torch import Tensor

from torchfx import _ops
from torchfx.filter.filter import Filter, check_tensor
from torchfx.lti import LTI, convolve

__all__ = ["IIR", "cutoff_text"]


def cutoff_text(cutoff: float | Tensor) -> str:
    """Return a cutoff in Hz as people write it; a learned one has no value on the meta device."""
    if isinstance(cutoff, Tensor):
        return "?" if cutoff.is_meta else f"{float(cutoff.detach()):g}"
    return f"{cutoff:g}"


class IIR(Filter):
    """A recursive (infinite impulse response) filter, run as a cascade of second-order sections in float64."""

    @abstractmethod
    def _design(self, fs: float) -> Tensor:
        """Return the sections at this rate: float64, (sections, 6)."""

    @property
    def sos(self) -> Tensor:
        """Second-order sections, float64, (sections, 6), rows b0 b1 b2 a0 a1 a2."""
        return self._design(self._own_rate()).to(self._device or "cpu").clone()

    @property
    def b(self) -> Tensor:
        """Numerator of the whole transfer function, float64, (order + 1,): to read; filtering runs the sections."""
        return self._transfer()[0]

    @property
    def a(self) -> Tensor:
        """Denominator of the whole transfer function, float64, (order + 1,): to read; filtering runs the sections."""
        return self._transfer()[1]

    def _transfer(self) -> tuple[Tensor, Tensor]:
        sos = self.sos
        b, a = sos.new_ones(1), sos.new_ones(1)
        for row in sos:
            b, a = convolve(b, row[:3]), convolve(a, row[3:])
        # A section of first order ends both polynomials in a zero that is none of the filter's coefficients.
        used = int(torch.nonzero((b != 0) | (a != 0)).max()) + 1
        return b[:used], a[:used]

    def lti(self, rate: float | None) -> LTI:
        """Return the filter as sections, at its own rate (Hz) or the signal's."""
        return LTI(sos=self._design(self._rate_for(rate)))

    def forward(self, x: Tensor) -> Tensor:
        """Filter a signal (..., time), float32 or float64, from rest."""
        check_tensor(x)
        sos = self._design(self._own_rate()).to(self._device or x.device)
        return _ops.parallel_iir_forward(x, sos)[0]
