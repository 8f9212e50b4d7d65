"""Peak normalisation."""

from __future__ import annotations

import torch
from torch import Tensor

from torchfx.checks import positive_number
from torchfx.errors import ArgumentError
from torchfx.processor import Processor

__all__ = ["Normalize"]


class Normalize(Processor):
    """Scale a recording so that its largest sample, over all channels, has the magnitude `peak`.

    One factor serves all channels, so the stereo image stays; in a batch (..., channels, time) each item has its own.
    Silence stays silence.

    Args:
        peak: magnitude of the largest sample afterwards, > 0.

    Examples:
        >>> import torch
        >>> Normalize(peak=0.5)(torch.tensor([[1.0, -4.0], [0.0, 2.0]]))
        tensor([[ 0.1250, -0.5000], [ 0.0000, 0.2500]])
    """

    def __init__(self, peak: float = 1.0) -> None:
        """Check and keep the peak."""
        super().__init__()
        self.peak = positive_number("peak", peak)

    def forward(self, x: Tensor) -> Tensor:
        """Scale a signal (time,), (channels, time) or (..., channels, time)."""
        if x.ndim == 0 or x.numel() == 0:
            raise ArgumentError(f"x must hold samples, shape (..., time), got the empty shape {tuple(x.shape)}")
        over = (-2, -1) if x.ndim > 1 else (-1,)
        loudest = torch.maximum(x.amax(over, keepdim=True), -x.amin(over, keepdim=True))
        return x / torch.where(loudest > 0, loudest / self.peak, 1.0)

    def extra_repr(self) -> str:
        """Return the peak as text."""
        return f"peak={self.peak:g}"
