"""Linkwitz-Riley filters and crossovers: bands whose sum has a flat magnitude."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from torch import Tensor

from torchfx.design import crossover, linkwitz_riley
from torchfx.design.linkwitz_riley import MOST_LINKWITZ_RILEY, SIDES, check_even
from torchfx.filter.bank import Bank
from torchfx.filter.recursive import RecursiveFilter
from torchfx.parameters import Value, choice, count, frequencies, frequency, sample_rate

__all__ = ["Crossover", "HiLinkwitzRiley", "LinkwitzRiley", "LoLinkwitzRiley"]


class LinkwitzRiley(RecursiveFilter):
    """Linkwitz-Riley filter: two equal Butterworth filters of half the order in series; -6 dB at the cutoff.

    For orders 4, 8, ... the sum of low-pass and high-pass is an all-pass; for orders 2, 6, ... their difference is.
    `Crossover` returns all bands at once.

    Examples:
        >>> import torch
        >>> impulse = torch.eye(1, 1000, dtype=torch.float64)
        >>> low, high = (LinkwitzRiley(1000, 4, btype=side, fs=48_000)(impulse) for side in ("lowpass", "highpass"))
        >>> bool((torch.fft.rfft(low + high).abs() - 1).abs().max() < 1e-12)
        True
    """

    cutoff: Value = frequency(doc="-6 dB frequency; an `nn.Parameter` is learned")
    order: int = count(default=4, low=2, high=MOST_LINKWITZ_RILEY, draws=(2, 8), doc="even")
    fs: float | None = sample_rate(default=None)
    btype: Literal["lowpass", "highpass"] = choice(SIDES, default="lowpass", doc="which frequencies pass")

    def check_parameters(self) -> None:
        """Raise if the order is odd."""
        check_even(self.order)

    def design(self, rate: Any) -> Tensor:
        """Return the sections at a sample rate (Hz)."""
        return linkwitz_riley(self.cutoff, self.order, rate, self.btype)


class HiLinkwitzRiley(LinkwitzRiley):
    """Linkwitz-Riley high-pass.

    Examples:
        >>> HiLinkwitzRiley(2000)
        HiLinkwitzRiley(cutoff=2000, order=4)
    """

    btype = "highpass"


class LoLinkwitzRiley(LinkwitzRiley):
    """Linkwitz-Riley low-pass.

    Examples:
        >>> LoLinkwitzRiley(2000, order=8)
        LoLinkwitzRiley(cutoff=2000, order=8)
    """

    btype = "lowpass"


class Crossover(Bank):
    """Split a signal into bands, (..., time) to (..., bands, time). Their sum is an all-pass, flat in magnitude.

    Linkwitz-Riley filters split the signal at each cutoff. The bands below a cutoff also pass through the all-pass that
    equals the sum of the two halves. For orders 2, 6, ... the high-pass halves are inverted.

    Examples:
        >>> import torch
        >>> split = Crossover([200, 2000], fs=48_000)
        >>> bands = split(torch.randn(2, 1000))
        >>> bands.shape  # low, middle and high of both channels
        torch.Size([2, 3, 1000])
        >>> low, middle, high = bands.unbind(-2)
    """

    cutoffs: float | Sequence[float] = frequencies(doc="-6 dB frequencies between the bands, one less than bands")
    order: int = count(default=4, low=2, high=MOST_LINKWITZ_RILEY, draws=(2, 8), doc="of the slopes, even")
    fs: float | None = sample_rate(default=None)

    @property
    def bands(self) -> int:
        """The number of bands."""
        return len(self.cutoffs) + 1 if isinstance(self.cutoffs, tuple) else 2

    def check_parameters(self) -> None:
        """Raise if the order is odd."""
        check_even(self.order)

    def design(self, rate: Any) -> Tensor:
        """Return the sections at a sample rate (Hz), (bands, sections, 6)."""
        return crossover(self.cutoffs, self.order, rate)
