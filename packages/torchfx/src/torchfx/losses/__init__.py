"""Losses between an estimate and a target: spectral, waveform and loudness losses.

All are `nn.Module`s, called with (estimate, target) of shape (..., time), and return a scalar. `prefilter` is a
processor that is applied to both signals first, for example `torchfx.filter.Weighting("A")`.
"""

from torchfx.losses.loudness import LoudnessLoss
from torchfx.losses.spectral import MelSTFTLoss, MultiResolutionSTFTLoss, STFTLoss, SumAndDifferenceLoss
from torchfx.losses.waveform import DCLoss, ESRLoss, LogCoshLoss, SISDRLoss, SNRLoss

__all__ = [
    "DCLoss",
    "ESRLoss",
    "LogCoshLoss",
    "LoudnessLoss",
    "MelSTFTLoss",
    "MultiResolutionSTFTLoss",
    "SISDRLoss",
    "SNRLoss",
    "STFTLoss",
    "SumAndDifferenceLoss",
]
