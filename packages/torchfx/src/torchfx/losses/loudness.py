"""Loudness loss."""

from __future__ import annotations

from torch import Tensor

from torchfx.checks import sample_rate
from torchfx.errors import ArgumentError
from torchfx.losses.loss import Loss
from torchfx.loudness import integrated

__all__ = ["LoudnessLoss"]


class LoudnessLoss(Loss):
    """The mean absolute difference between the integrated loudnesses (ITU-R BS.1770), in LU.

    Args:
        fs: sample rate, Hz.

    Examples:
        >>> import torch
        >>> x = torch.sin(0.1 * torch.arange(48_000.0))[None]
        >>> round(LoudnessLoss(48_000)(0.5 * x, x).item(), 2)
        6.02
    """

    def __init__(self, fs: float) -> None:
        """Check the rate."""
        super().__init__()
        self.fs = sample_rate(fs)

    def distance(self, estimate: Tensor, target: Tensor) -> Tensor:
        """Return the mean distance; signals are (..., channels, time)."""
        if estimate.dim() < 2:
            raise ArgumentError(f"estimate must have the shape (..., channels, time), got {tuple(estimate.shape)}")
        distance = (integrated(estimate, self.fs) - integrated(target, self.fs)).abs()
        if not bool(distance.isfinite().all()):
            raise ArgumentError("estimate and target must be louder than -70 LUFS: silence has no loudness")
        return distance.mean().to(estimate.dtype)
