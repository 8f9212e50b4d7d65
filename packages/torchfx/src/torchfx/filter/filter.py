"""Base class of all filters: linear and time-invariant, with coefficients that are designed on first use."""

from __future__ import annotations

import torch

from torchfx.core.processor import Processor
from torchfx.rate import ambient_rate
from torchfx.tensors import on_device

__all__ = ["Filter"]


class Filter(Processor):
    """A linear filter. Its coefficients are float64 for any signal type, and are designed on first use."""

    def move_coeff(self, device: str | torch.device) -> None:
        """Put the coefficients on a device, like `.to(device)`. Optional: calls move them where the signal is."""
        self._device = on_device(torch.empty(0), device).device

    def compute_coefficients(self) -> None:
        """Design the coefficients now, if the rate is known, instead of at the first call."""
        rate = self.fs if ambient_rate() is None else ambient_rate()
        if rate is not None or "fs" not in self.declarations:
            self.lti(self.rate_for(rate))

    def _own_rate(self) -> float | None:
        """Return the rate (Hz) to work at outside of a chain: the filter's own, or the ambient one."""
        if self.fs is not None and torch.compiler.is_dynamo_compiling():
            return self.fs  # the compiler cannot follow context variables
        return self.rate_for(ambient_rate())
