"""Convert powers and magnitudes to decibels."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import torch
from torch import Tensor

from torchfx.core.feature import Feature
from torchfx.parameters import choice, number

__all__ = ["AMIN", "AmplitudeToDB", "limited", "raised"]

AMIN = 1e-10
"""The power or magnitude that smaller ones are taken for, as in torchaudio and librosa."""


class AmplitudeToDB(Feature):
    """Convert powers or magnitudes to dB relative to 1; values below 1e-10 count as 1e-10.

    `top_db` limits the levels to this distance below the maximum of an example over all channels; this needs all
    frames.

    Examples:
        >>> import torch
        >>> AmplitudeToDB()(torch.tensor([[1.0, 0.01, 0.0]])).round()
        tensor([[   0.,  -20., -100.]])
    """

    takes: ClassVar[str] = "features"
    is_pointwise: ClassVar[bool] = True
    stype: str = choice(("power", "magnitude"), default="power", doc="what is given")
    top_db: float | None = number(
        default=None, low=0.0, unit="dB", learnable=False, doc="range below the loudest value"
    )

    def refusal(self) -> str:
        """Return the reason why the processor cannot run in a stream, or ""."""
        return "" if self.top_db is None else "needs the whole signal, whose loudest value top_db counts from"

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape unchanged."""
        return shape

    def features(self, x: Tensor, rate: Any) -> Tensor:
        """Return the levels."""
        factor = 10.0 if self.stype == "power" else 20.0
        return limited(factor / math.log(10) * x.clamp(min=AMIN).log(), self.top_db)


def limited(levels: Tensor, top_db: float | None) -> Tensor:
    """Return levels (..., channels, bins, frames) in dB, `raised` to a distance below the maximum of each example."""
    if top_db is None:
        return levels
    dims = (-3, -2, -1) if levels.dim() > 2 else (-2, -1)
    return raised(levels, levels.amax(dims, keepdim=True) - top_db)


def raised(levels: Tensor, least: Tensor) -> Tensor:
    """Return the larger ones of levels and `least`; in the memory of the levels if no gradient is recorded."""
    return torch.maximum(levels, least) if levels.requires_grad else levels.clamp_(min=least)
