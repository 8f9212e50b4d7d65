"""A delay without feedback."""

from __future__ import annotations

from typing import Any

from torchfx.core.processor import Processor
from torchfx.parameters import duration, duration_samples, number, sample_rate
from torchfx.plan import LTI

__all__ = ["Delay"]


class Delay(Processor):
    """Delay a signal by a whole number of samples, the nearest to a time or a note's length.

    A note "a/b" lasts a/b of a whole note, which is four quarters: 240 / bpm seconds. A dot ("1/8." or "1/8d") makes it
    1.5 times as long, a triplet's "t" two thirds. The output is as long as the input; what is delayed beyond its end is
    lost, so append silence (`Pad`) to keep it. `Mix(Delay(...), 0.3)` adds an echo; `torchfx.filter.FractionalDelay`
    delays by parts of a sample.

    Examples:
        >>> import torch
        >>> Delay("1 samples", fs=48_000)(torch.tensor([1.0, 2.0, 3.0]))
        tensor([0., 1., 2.])
        >>> Delay("1/8.", bpm=90, fs=48_000).lti(48_000)
        LTI(delay 24000)
    """

    time: float | str = duration(default=0.25, notes=True, doc="how late")
    bpm: float = number(
        default=120.0, low=0.0, open_low=True, high=1e4, draws=(1e3, 1e4), doc="quarters per minute", learnable=False
    )
    fs: float | None = sample_rate(default=None)

    def lti(self, rate: Any) -> LTI:
        """Return the delay."""
        return LTI(delay=duration_samples(self.time, rate, self.bpm))
