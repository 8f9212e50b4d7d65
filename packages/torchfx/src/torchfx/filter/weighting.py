"""Frequency weightings for sound level and loudness, and the equalisation of records."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from torchfx.design.weighting import CURVES, Curve, riaa, weighting
from torchfx.filter.recursive import RecursiveFilter
from torchfx.parameters import choice, flag, sample_rate

__all__ = ["RIAA", "Weighting"]


class Weighting(RecursiveFilter):
    """Weight frequencies as the ear does, before a level is taken.

    A and C are those of IEC 61672-1:2013, B that of IEC 651 (historical), 0 dB at 1 kHz each; K is that of
    ITU-R BS.1770-5. The curves follow the analogue ones up to 20 kHz within 0.4 dB at 44.1 and 48 kHz and within
    0.02 dB from 96 kHz on; at 8 to 32 kHz up to 0.8 fs/2 within 0.4 dB. All this is well inside class 1. K equals the
    standard's coefficients at 48 kHz and is moved to other rates by the bilinear transform, whose error is below 0.1 dB
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
    """Equalise records: the playback curve of IEC 60098 (3180, 318 and 75 us), 0 dB at 1 kHz, or its inverse.

    The curve follows the analogue one within 0.35 dB up to 20 kHz at 44.1 and 48 kHz, within 0.02 dB from 96 kHz on.

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
