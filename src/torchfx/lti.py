"""What a linear time-invariant step is made of, and how steps in a row become one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["LTI", "cascade"]


@dataclass(frozen=True)
class LTI:
    """A linear time-invariant system: a gain, second-order sections and a finite impulse response in a row.

    Attributes:
        gain: a factor (linear, not dB).
        sos: float64 (sections, 6), rows b0 b1 b2 a0 a1 a2, or None for no recursive part.
        taps: float64 (n,), or None for no finite impulse response.
    """

    gain: float = 1.0
    sos: Tensor | None = None
    taps: Tensor | None = None

    def folded(self) -> LTI:
        """Return the same system with the gain multiplied into its first section or its taps, where it has any."""
        if self.gain == 1.0:
            return self
        if self.sos is not None:
            scale = torch.ones_like(self.sos)
            scale[0, :3] = self.gain
            return LTI(1.0, self.sos * scale, self.taps)
        if self.taps is not None:
            return LTI(1.0, None, self.taps * self.gain)
        return self


def cascade(systems: Sequence[LTI]) -> LTI:
    """Return the systems in a row as one: gains multiply, sections line up, taps convolve.

    The order of linear time-invariant systems does not change their result, so recursive parts may move past
    finite ones.
    """
    gain = 1.0
    for system in systems:
        gain *= system.gain
    sections = [system.sos for system in systems if system.sos is not None]
    taps: Tensor | None = None
    for system in systems:
        if system.taps is not None:
            taps = system.taps if taps is None else convolve(taps, system.taps)
    sos = None if not sections else sections[0] if len(sections) == 1 else torch.cat(sections)
    return LTI(gain, sos, taps)


def convolve(a: Tensor, b: Tensor) -> Tensor:
    """Return the full convolution of two float64 tap vectors, shapes (n,) and (m,) -> (n + m - 1,).

    Short ones directly, because a transform would spread its rounding error over taps that are almost zero.
    """
    if a.numel() < b.numel():
        a, b = b, a
    size = a.numel() + b.numel() - 1
    if b.numel() <= 4096:
        return torch.nn.functional.conv1d(a[None, None], b.flip(0)[None, None], padding=b.numel() - 1).reshape(size)
    product: Tensor = torch.fft.irfft(torch.fft.rfft(a, size) * torch.fft.rfft(b, size), size)
    return product
