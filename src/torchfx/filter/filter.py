"""What all filters share: designed coefficients that follow the signal's rate and the module's device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torchfx.checks import sample_rate
from torchfx.errors import ArgumentTypeError
from torchfx.processor import Processor
from torchfx.rate import ambient_rate, resolve_rate

__all__ = ["Filter", "check_tensor"]


def check_tensor(x: object) -> None:
    """Raise unless `x` is a tensor."""
    if not isinstance(x, Tensor):
        raise ArgumentTypeError(
            f"x must be a tensor (..., time), got {type(x).__name__}; a Wave is piped: wave | module"
        )


class Filter(Processor):
    """A linear filter. Its coefficients are float64 whatever the signal's dtype, and are designed when needed.

    Args:
        fs: sample rate in Hz, or None to follow the wave's.
    """

    def __init__(self, fs: float | None = None) -> None:
        """Check and keep the sample rate."""
        super().__init__()
        self.fs = None if fs is None else sample_rate(fs)
        self._device: torch.device | None = None

    @property
    def device(self) -> torch.device | None:
        """Where the coefficients were put by `.to()` or `move_coeff`; None: they go where the signal is."""
        return self._device

    def move_coeff(self, device: str | torch.device) -> None:
        """Put the coefficients on a device. `.to(device)` does the same; neither is needed."""
        self._device = torch.device(device)

    def compute_coefficients(self) -> None:
        """Design the coefficients now, where the rate is known; they are designed at the first call otherwise."""
        if self.fs is not None or ambient_rate() is not None:
            self.lti(ambient_rate())

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        # A change of dtype (.half(), .float()) leaves no trace here: coefficients stay float64.
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        was = self._device or torch.device("cpu")
        now = fn(torch.empty(0, device=was, dtype=torch.float64)).device
        if now != was:
            self._device = now
        return self

    def _own_rate(self) -> float:
        """Return the rate (Hz) to work at outside of a chain: the filter's own, or the ambient one."""
        if self.fs is not None and torch.compiler.is_dynamo_compiling():
            return self.fs  # the compiler cannot follow context variables
        return self._rate_for(ambient_rate())

    def _rate_for(self, rate: float | None) -> float:
        """Return the rate (Hz) to work at for a signal of this rate."""
        return resolve_rate(self.fs, rate, type(self).__name__)
