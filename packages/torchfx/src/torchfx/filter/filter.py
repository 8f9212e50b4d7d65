"""What all filters share: linear, time-invariant, with coefficients that are designed when needed."""

from __future__ import annotations

import torch

from torchfx.core.processor import Processor
from torchfx.rate import ambient_rate
from torchfx.tensors import on_device

__all__ = ["Filter"]


class Filter(Processor):
    """A linear filter. Its coefficients are float64 whatever the signal's type, and are designed when needed."""

    def move_coeff(self, device: str | torch.device) -> None:
        """Put the coefficients on a device. `.to(device)` does the same; neither is needed."""
        self._device = on_device(torch.empty(0), device).device

    def compute_coefficients(self) -> None:
        """Design the coefficients now, where the rate is known; they are designed at the first call otherwise."""
        rate = self.fs if ambient_rate() is None else ambient_rate()
        if rate is not None or "fs" not in self.declarations:
            self.lti(self.rate_for(rate))

    def _own_rate(self) -> float | None:
        """Return the rate (Hz) to work at outside of a chain: the filter's own, or the ambient one."""
        if self.fs is not None and torch.compiler.is_dynamo_compiling():
            return self.fs  # the compiler cannot follow context variables
        return self.rate_for(ambient_rate())
