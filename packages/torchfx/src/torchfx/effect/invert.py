"""Opposite polarity."""

from __future__ import annotations

from typing import Any

from torchfx.core.processor import Processor
from torchfx.plan import LTI

__all__ = ["Invert"]


class Invert(Processor):
    """Invert the polarity: every sample is multiplied by -1.

    `Gain(torch.tensor([1.0, -1.0]))` inverts only the second of two channels.

    Examples:
        >>> import torch
        >>> Invert()(torch.tensor([0.5, -1.0]))
        tensor([-0.5000,  1.0000])
    """

    def lti(self, rate: Any) -> LTI:
        """Return the factor -1."""
        return LTI(gain=-1.0)
