"""A delay by a fractional number of samples."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from torchfx.errors import ArgumentError
from torchfx.filter.fir import DesignedResponse
from torchfx.parameters import Value, count, number
from torchfx.plan import LTI

__all__ = ["FractionalDelay"]

REACH = 16
"""Samples to each side that an output between two samples is made of."""

LONGEST = 1e8
"""The largest delay that is a number, in samples."""

MOST_TAPS = 1_000_000
"""The largest delay that is a tensor, in samples: it has as many taps."""

BETA = 10.0
"""Parameter of the Kaiser window: 100 dB."""


class FractionalDelay(DesignedResponse):
    """Delay by a possibly fractional number of samples, with a windowed sinc of 32 taps.

    The error is below 1e-4 up to three quarters of the Nyquist frequency. A tensor gives each example its own delay,
    and an `nn.Parameter` is learned; `max_delay` is the upper limit of such delays.

    Examples:
        >>> import math, torch
        >>> turns = 2 * math.pi * 0.05 * torch.arange(200)
        >>> y = FractionalDelay(20.25)(torch.sin(turns))
        >>> bool((y[60:] - torch.sin(turns[60:] - 2 * math.pi * 0.05 * 20.25)).abs().max() < 1e-4)
        True
    """

    delay: Value = number(
        default=20.5, doc="in samples; none below 15 is causal", low=REACH - 1.0, high=LONGEST, draws=(15.0, 60.0)
    )
    max_delay: int = count(
        default=64, doc="in samples, of a delay that is a tensor", low=REACH, high=MOST_TAPS, draws=(61, 80)
    )

    def check_parameters(self) -> None:
        """Raise if a delay in a tensor exceeds `max_delay`."""
        from torchfx.tensors import is_readable

        if isinstance(self.delay, Tensor) and is_readable(self.delay):
            beyond = self.delay.detach()[self.delay > self.max_delay]
            if len(beyond):
                raise ArgumentError(f"delay must lie in [15, max_delay] = [15, {self.max_delay}], got {beyond[0]:g}")

    def lti(self, rate: Any) -> LTI:
        """Return the whole samples as a delay and the fraction as taps; for tensors, return only taps."""
        first = 0 if isinstance(self.delay, Tensor) else math.floor(self.delay) - REACH + 1
        return LTI(taps=self._taps(first), delay=first)

    def design(self, rate: Any) -> Tensor:
        """Return the taps, which do not depend on the rate."""
        return self._taps(0)

    def _taps(self, first: int) -> Tensor:
        """Return the taps from one on."""
        delay = torch.as_tensor(self.delay, dtype=torch.float64)
        last = self.max_delay + REACH if isinstance(self.delay, Tensor) else math.floor(self.delay) + REACH
        away = torch.arange(first, last + 1, dtype=torch.float64, device=delay.device) - delay[..., None]
        inside = 1 - (away / REACH).square()
        # The root has no slope at 0, where the window ends.
        window = torch.special.i0(BETA * inside.clamp(min=1e-12).sqrt()) / float(torch.special.i0(torch.tensor(BETA)))
        return torch.sinc(away) * torch.where(inside > 0, window, 0.0)
