"""The parts of a linear time-invariant step, and how consecutive steps become one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from torchfx._ops.checks import broadcast_shapes

__all__ = ["LTI", "cascade", "convolve"]


@dataclass(frozen=True, eq=False, repr=False)
class LTI:
    """A linear time-invariant system: a gain, a delay, a finite impulse response and second-order sections in a row.

    Leading dimensions of gain, taps and sections broadcast with the signal's: each example, channel or band may have a
    different system.

    Attributes:
        gain: a factor (linear, not dB), or a tensor of factors (...).
        sos: float64 (..., sections, 6), rows b0 b1 b2 a0 a1 a2, or None for no recursive part.
        taps: float64 (..., n), or None for no finite impulse response.
        delay: in samples, >= 0.
        added_dimensions: number of dimensions, before time, that only the output has: 1 for a bank of filters,
            whose bands are the last leading dimension of gain, taps and sections.

    Examples:
        >>> LTI(gain=0.5, sos=torch.zeros(3, 6))
        LTI(gain 0.5, 3 sections)
    """

    gain: float | Tensor = 1.0
    sos: Tensor | None = None
    taps: Tensor | None = None
    delay: int = 0
    added_dimensions: int = 0

    def spread(self, x: Tensor) -> Tensor:
        """Return a signal (..., time) with the additional dimensions of the output."""
        for _ in range(self.added_dimensions):
            x = x.unsqueeze(-2)
        return x

    def folded(self) -> LTI:
        """Return the same system with the gain multiplied into its first section or its taps, where it has any."""
        if isinstance(self.gain, float) and self.gain == 1.0:
            return self
        if self.sos is not None:
            return replace(self, gain=1.0, sos=_scaled(self.sos, self.gain))
        if self.taps is not None:
            gain = self.gain
            taps = self.taps * (gain.to(self.taps)[..., None] if isinstance(gain, Tensor) else gain)
            return replace(self, gain=1.0, taps=taps)
        return self

    def to(self, device: torch.device) -> LTI:
        """Return the system with its tensors on a device."""
        gain = self.gain.to(device) if isinstance(self.gain, Tensor) else self.gain
        sos, taps = (None if values is None else values.to(device) for values in (self.sos, self.taps))
        return replace(self, gain=gain, sos=sos, taps=taps)

    def frozen(self) -> LTI:
        """Return a copy without gradients, which later changes in place do not affect."""
        gain = self.gain.detach().clone() if isinstance(self.gain, Tensor) else self.gain
        sos, taps = (None if values is None else values.detach().clone() for values in (self.sos, self.taps))
        return replace(self, gain=gain, sos=sos, taps=taps)

    def tensors(self) -> list[Tensor]:
        """Return the tensors it holds."""
        return [value for value in (self.gain, self.sos, self.taps) if isinstance(value, Tensor)]

    def equals(self, other: LTI) -> bool:
        """Return whether another system has the same coefficients."""
        if (self.delay, self.added_dimensions) != (other.delay, other.added_dimensions):
            return False
        for a, b in zip((self.gain, self.sos, self.taps), (other.gain, other.sos, other.taps), strict=True):
            tensors = isinstance(a, Tensor) + isinstance(b, Tensor)
            if tensors == 1 or not (torch.equal(a, b) if tensors else a == b):  # type: ignore[arg-type]
                return False
        return True

    def leading(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the output's leading dimensions for a signal with these."""
        cores = (("gain", self.gain, 0), ("sos", self.sos, 2), ("taps", self.taps, 1))
        own = {
            name: values.shape[: values.dim() - core]
            for name, values, core in cores
            if isinstance(values, Tensor) and values.dim() > core
        }
        spread = (*shape, *(1,) * self.added_dimensions)
        return broadcast_shapes(x=spread, **own) if own else spread

    def __repr__(self) -> str:
        """Return the parts as text."""
        parts = []
        if isinstance(self.gain, Tensor):
            parts.append(f"gains {tuple(self.gain.shape)}")
        elif self.gain != 1.0:
            parts.append(f"gain {self.gain:g}")
        if self.delay:
            parts.append(f"delay {self.delay}")
        if self.taps is not None:
            parts.append(f"{self.taps.shape[-1]} taps")
        if self.sos is not None:
            parts.append(f"{self.sos.shape[-2]} sections")
        return f"LTI({', '.join(parts)})"


def cascade(systems: Sequence[LTI]) -> LTI:
    """Return the systems in a row as one: gains multiply, delays add, sections line up, taps convolve.

    The order of linear time-invariant systems does not change their result, so recursive parts may move past
    finite ones. What comes before a bank has no dimension of bands yet: it is the same in all of them.
    """
    added = sum(system.added_dimensions for system in systems)
    if added:
        later = added
        systems = list(systems)
        for i, system in enumerate(systems):
            later -= system.added_dimensions
            systems[i] = _with_dimensions(system, later)
    gain: float | Tensor = 1.0
    for system in systems:
        gain = gain * system.gain
    taps: Tensor | None = None
    for system in systems:
        if system.taps is not None:
            taps = system.taps if taps is None else convolve(taps, system.taps)
    sections = [system.sos for system in systems if system.sos is not None]
    delay = sum(system.delay for system in systems)
    return LTI(gain, _lined_up(sections) if sections else None, taps, delay, added)


def convolve(a: Tensor, b: Tensor) -> Tensor:
    """Return the full convolution of float64 tap vectors, shapes (..., n) and (..., m) -> (..., n + m - 1).

    Short ones directly, because a transform would spread its rounding error over taps that are almost zero.
    """
    if a.shape[-1] < b.shape[-1]:
        a, b = b, a
    size = a.shape[-1] + b.shape[-1] - 1
    if b.shape[-1] > 4096:
        product: Tensor = torch.fft.irfft(torch.fft.rfft(a, size) * torch.fft.rfft(b, size), size)
        return product
    leading = torch.broadcast_shapes(a.shape[:-1], b.shape[:-1])
    rows = math.prod(leading)
    a, b = (taps.expand(*leading, taps.shape[-1]).reshape(1, rows, taps.shape[-1]) for taps in (a, b))
    filters = b.flip(-1).transpose(0, 1)
    return torch.nn.functional.conv1d(a, filters, padding=b.shape[-1] - 1, groups=rows).reshape(*leading, size)


def _with_dimensions(system: LTI, count: int) -> LTI:
    """Return a system whose tensors have `count` more dimensions of size 1, after those of the signal."""
    gain, sos, taps = system.gain, system.sos, system.taps
    for _ in range(count):
        gain = gain.unsqueeze(-1) if isinstance(gain, Tensor) else gain
        sos = None if sos is None else sos.unsqueeze(-3)
        taps = None if taps is None else taps.unsqueeze(-2)
    return LTI(gain, sos, taps, system.delay)


def _lined_up(sections: Sequence[Tensor]) -> Tensor:
    if len(sections) == 1:
        return sections[0]
    leading = torch.broadcast_shapes(*(sos.shape[:-2] for sos in sections))
    return torch.cat([sos.expand(*leading, *sos.shape[-2:]) for sos in sections], dim=-2)


def _scaled(sos: Tensor, gain: float | Tensor) -> Tensor:
    """Return sections with the first one's numerator multiplied by a gain."""
    factor = gain.to(sos)[..., None, None] if isinstance(gain, Tensor) else gain
    numerator = sos[..., :1, :3] * factor
    sos = sos.expand(*numerator.shape[:-2], *sos.shape[-2:])
    first = torch.cat([numerator, sos[..., :1, 3:]], dim=-1)
    return torch.cat([first, sos[..., 1:, :]], dim=-2)
