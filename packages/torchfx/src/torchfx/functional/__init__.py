"""Filtering as functions, with SciPy's names and arguments: differentiable, on any device, any leading dimensions.

`torchfx.functional.torchaudio` has the same under torchaudio's names and arguments.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from torchfx.functional import torchaudio
from torchfx.functional.filtering import biquad, fftconvolve, lfilter, sosfilt
from torchfx.functional.harmonic_percussive import hpss
from torchfx.functional.noise import add_noise, noise
from torchfx.functional.sampling import decimate, medfilt
from torchfx.functional.silence import loud_intervals
from torchfx.functional.spectral import envelope, hilbert, welch
from torchfx.functional.stretching import time_stretch
from torchfx.functional.time_varying import allpole, time_varying_sosfilt
from torchfx.functional.zero_phase import filtfilt, lfilter_zi, sosfilt_zi, sosfiltfilt
from torchfx.other_names import missing as _missing

__all__ = [
    "add_noise",
    "allpole",
    "biquad",
    "decimate",
    "envelope",
    "fftconvolve",
    "filtfilt",
    "hilbert",
    "hpss",
    "lfilter",
    "lfilter_zi",
    "loud_intervals",
    "medfilt",
    "noise",
    "sosfilt",
    "sosfilt_zi",
    "sosfiltfilt",
    "time_stretch",
    "time_varying_sosfilt",
    "torchaudio",
    "welch",
]

if not _TYPE_CHECKING:  # a type checker reports names that do not exist
    __getattr__ = _missing(__name__)
