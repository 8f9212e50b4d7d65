"""Frequency weightings for sound level and loudness, and RIAA equalisation."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from torchfx.design.weighting import CURVES, Curve, riaa, weighting
from torchfx.filter.recursive import RecursiveFilter
from torchfx.parameters import choice, flag, sample_rate

__all__ = ["RIAA", "Weighting"]


class Weighting(RecursiveFilter):
    """Frequency weighting A, B, C or K for level measurements.

    A and C follow IEC 61672-1:2013 and B the historical IEC 651, each with 0 dB at 1 kHz; K follows ITU-R BS.1770-5.
    The responses match the analogue curves up to 20 kHz within 0.4 dB at 44.1 and 48 kHz, and within 0.02 dB from 96
    kHz on; at rates of 8 to 32 kHz within 0.4 dB up to 0.8 fs/2. These errors are well inside class 1. K equals the
    standard's coefficients at 48 kHz; for other rates the bilinear transform converts them, with an error below 0.1 dB
    up to 10 kHz at 44.1 kHz.

    Examples:
        >>> import math, torch
        >>> tone = torch.sin(2 * math.pi * 100 / 96_000 * torch.arange(96_000, dtype=torch.float64))
        >>> level = Weighting("A", fs=96_000)(tone)[48_000:].square().mean().sqrt() / math.sqrt(0.5)
        >>> round(20 * float(level.log10()), 1)  # the standard's table says -19.1 dB
        -19.1
    """

    curve: Curve = choice(CURVES, default="A")
    fs: float | None = sample_rate(default=None)

    def design(self, rate: Any) -> Tensor:
        """Return the sections at a sample rate (Hz)."""
        return weighting(self.curve, rate)


class RIAA(RecursiveFilter):
    """RIAA equalisation of vinyl records, or its inverse.

    The playback curve is that in IEC 60098 (3180, 318 and 75 us), 0 dB at 1 kHz.

    The response matches the analogue curve within 0.35 dB up to 20 kHz at 44.1 and 48 kHz, and within 0.02 dB from 96
    kHz on.

    Examples:
        >>> import torch
        >>> impulse = torch.eye(1, 100, dtype=torch.float64)
        >>> (RIAA(recording=True) | RIAA())
        FilterChain(
          (0): RIAA(recording=True)
          (1): RIAA()
        )
        >>> bool(torch.allclose((RIAA(recording=True, fs=96_000) | RIAA(fs=96_000))(impulse), impulse))
        True
    """

    recording: bool = flag(default=False, doc="whether it is the curve that records are cut with")
    fs: float | None = sample_rate(default=None)

    def design(self, rate: Any) -> Tensor:
        """Return the section at a sample rate (Hz)."""
        return riaa(rate, self.recording)
