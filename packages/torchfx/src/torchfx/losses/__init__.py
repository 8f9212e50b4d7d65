"""Losses between an estimate and a target: of their spectra, their samples, and how loud they are.

All are `nn.Module`s called with (estimate, target), shape (..., time), and give a scalar. `prefilter` is any processor
that both signals go through first, such as `torchfx.filter.Weighting("A")`.
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
