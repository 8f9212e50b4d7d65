"""Spectrograms, mel bands and cepstra: features at the end of a chain, `chain | MelSpectrogram()`.

Names, arguments and results equal torchaudio's, with two differences: the sample rate is `fs`, which a `Wave` supplies,
and windows are given by name instead of as functions.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from torchfx.other_names import missing as _missing
from torchfx.spectral.cepstrum import LFCC, MFCC
from torchfx.spectral.changes import ComputeDeltas, SlidingWindowCmn
from torchfx.spectral.constant_q import CQT, VQT, InverseCQT, InverseVQT
from torchfx.spectral.levels import AmplitudeToDB
from torchfx.spectral.log_mel import LogMel
from torchfx.spectral.masking import FrequencyMasking, SpecAugment, TimeMasking
from torchfx.spectral.mel import InverseMelScale, MelScale, MelSpectrogram
from torchfx.spectral.spectrogram import GriffinLim, InverseSpectrogram, SpectralCentroid, Spectrogram

__all__ = [
    "CQT",
    "LFCC",
    "MFCC",
    "VQT",
    "AmplitudeToDB",
    "ComputeDeltas",
    "FrequencyMasking",
    "GriffinLim",
    "InverseCQT",
    "InverseMelScale",
    "InverseSpectrogram",
    "InverseVQT",
    "LogMel",
    "MelScale",
    "MelSpectrogram",
    "SlidingWindowCmn",
    "SpecAugment",
    "SpectralCentroid",
    "Spectrogram",
    "TimeMasking",
]

if not _TYPE_CHECKING:  # a type checker reports names that do not exist
    __getattr__ = _missing(__name__)
