"""First-order filters: smoothing, DC blocking, pre-emphasis and de-emphasis of speech."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torchfx.design.biquad import section
from torchfx.design.first_order import dc_blocker, one_pole
from torchfx.filter.fir import FiniteResponse
from torchfx.filter.recursive import RecursiveFilter
from torchfx.parameters import Value, frequency, number, sample_rate

__all__ = ["DCBlocker", "Deemphasis", "OnePole", "Preemphasis"]


class OnePole(RecursiveFilter):
    """One-pole smoothing, like an RC filter: y[n] = (1 - p) x[n] + p y[n-1] with p = exp(-2 pi cutoff / fs).

    The step response equals that of the analogue filter at every sample, with the time constant 1 / (2 pi cutoff). The
    gain at the cutoff is -3 dB if the cutoff lies far below fs/2; `LoButterworth(cutoff, order=1)` has -3 dB at any
    cutoff.

    Examples:
        >>> import math, torch
        >>> rising = OnePole(1000 / (2 * math.pi), fs=48_000)(torch.ones(48))  # the time constant is 1 ms
        >>> round(float(rising[-1]), 4)  # 1 - 1/e
        0.6321
    """

    cutoff: Value = frequency(doc="1 / (2 pi times the time constant)")
    fs: float | None = sample_rate(default=None)

    def design(self, rate: Any) -> Tensor:
        """Return the section at a sample rate (Hz)."""
        return one_pole(self.cutoff, rate)


class DCBlocker(RecursiveFilter):
    """Remove the DC offset: a first-order high-pass below the audible range.

    Examples:
        >>> import torch
        >>> offset = DCBlocker(fs=48_000)(torch.ones(96_000))
        >>> bool(offset[-1].abs() < 1e-6)
        True
    """

    cutoff: Value = frequency(default=10.0, doc="-3 dB frequency")
    fs: float | None = sample_rate(default=None)

    def design(self, rate: Any) -> Tensor:
        """Return the section at a sample rate (Hz)."""
        return dc_blocker(self.cutoff, rate)


class Preemphasis(FiniteResponse):
    """Boost high frequencies, as usual before speech analysis: y[n] = x[n] - coeff x[n-1].

    Examples:
        >>> import torch
        >>> Preemphasis(0.5)(torch.tensor([1.0, 1.0, 1.0]))
        tensor([1.0000, 0.5000, 0.5000])
    """

    coeff: Value = number(default=0.97, low=0.0, high=1.0)

    def design(self, rate: Any) -> Tensor:
        """Return the taps, which do not depend on the rate."""
        if not isinstance(self.coeff, Tensor):
            return torch.tensor([1.0, -self.coeff], dtype=torch.float64, device="cpu")
        coeff = self.coeff.double()
        return torch.stack([torch.ones_like(coeff), -coeff], dim=-1)

    @property
    def b(self) -> Tensor:
        """The taps, float64, (..., 2)."""
        return self.design(None).to(self.device or "cpu")


class Deemphasis(RecursiveFilter):
    """Undo `Preemphasis`: y[n] = x[n] + coeff y[n-1].

    Examples:
        >>> import torch
        >>> (Preemphasis(0.5) | Deemphasis(0.5))(torch.tensor([1.0, 2.0, 3.0]))
        tensor([1., 2., 3.])
    """

    coeff: Value = number(default=0.97, low=0.0, high=1.0, open_high=True)

    def design(self, rate: Any) -> Tensor:
        """Return the section, which does not depend on the rate."""
        coeff = self.coeff.double() if isinstance(self.coeff, Tensor) else self.coeff
        return section((1.0, 0.0, 0.0, 1.0, -coeff, 0.0))
