"""Cepstra: cosine transforms of log band levels."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

from torch import Tensor

from torchfx.errors import ArgumentError
from torchfx.parameters import choice, count, flag, number, sample_rate
from torchfx.spectral.filters import cosines, linear_bands, mel_bands
from torchfx.spectral.framed import Windowed, mel_frames
from torchfx.spectral.levels import AMIN, limited
from torchfx.spectral.mel import SCALES
from torchfx.spectral.spectrogram import band_settings

__all__ = ["LFCC", "MFCC"]

TOP_DB = 80.0
OFFSET = 1e-6


class Cepstrum(Windowed):
    """Base class of cepstra: bands, their levels, and a DCT of type 2.

    Levels are in dB, limited to 80 dB below the example's maximum (which needs the whole signal), or natural logarithms
    of band + 1e-6.
    """

    @abstractmethod
    def bands(self, bins: int, rate: float) -> Tensor:
        """Return the filters (bands, bins)."""

    @abstractmethod
    def cosine_rows(self) -> Tensor:
        """Return the rows of the cosine transform (coefficients, bands)."""

    @abstractmethod
    def takes_logarithm(self) -> bool:
        """Return whether levels are natural logarithms."""

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return all dimensions but frames."""
        return (*shape, self.cosine_rows().shape[0])

    def refusal(self) -> str:
        """Return the reason why the processor cannot run in a stream, or ""."""
        if not self.takes_logarithm():
            return "needs the whole signal, whose loudest level the range of 80 dB counts from"
        return super().refusal()

    def of_frames(self, x: Tensor, rate: Any, origin: int, count: int) -> Tensor:
        """Return the cepstra of some frames."""
        bands = self.bands(self.n_fft // 2 + 1, rate).to(x.device)
        if self.takes_logarithm():
            levels = mel_frames(x, band_settings(self, x, bands, 2.0, 1.0, 0.0, OFFSET), origin, count)
        else:
            settings = band_settings(self, x, bands, 2.0, 10 / math.log(10), AMIN)
            levels = limited(mel_frames(x, settings, origin, count), TOP_DB)
        return self.cosine_rows().to(x.device, x.dtype) @ levels


class MFCC(Cepstrum):
    """Mel-frequency cepstral coefficients.

    The output has the shape (..., n_mfcc, frames). The parameters include those of `MelSpectrogram`; `mel_norm` is its
    `norm`.

    Examples:
        >>> import torch, torchfx as fx
        >>> wave = fx.Wave(torch.randn(1, 16_000), 16_000)
        >>> (wave | MFCC(n_mfcc=13, n_fft=512, n_mels=40)).shape
        torch.Size([1, 13, 63])
    """

    n_mfcc: int = count(default=40, draws=(1, 3), doc="coefficients, at most n_mels")
    norm: str | None = choice(("ortho", "none"), default="ortho", doc="whether the transform's rows have length 1")
    log_mels: bool = flag(default=False, doc="whether levels are natural logarithms")
    n_mels: int = count(default=128, draws=(3, 6), doc="bands")
    f_min: float = number(default=0.0, low=0.0, unit="Hz", learnable=False, doc="lowest corner")
    f_max: float | None = number(default=None, low=0.0, unit="Hz", learnable=False, doc="highest corner; None: fs/2")
    mel_norm: str | None = choice(("slaney",), default=None, doc="whether each band is divided by half its width in Hz")
    mel_scale: str = choice(SCALES, default="htk", doc="mel formula")
    fs: float | None = sample_rate(default=None)

    def check_parameters(self) -> None:
        """Raise if there are more coefficients than bands."""
        super().check_parameters()
        if self.n_mfcc > self.n_mels:
            raise ArgumentError(f"n_mfcc must be <= n_mels = {self.n_mels}, got {self.n_mfcc}")

    def bands(self, bins: int, rate: float) -> Tensor:
        """Return the filters."""
        return mel_bands(bins, rate, self.n_mels, self.f_min, self.f_max, self.mel_norm, self.mel_scale)

    def cosine_rows(self) -> Tensor:
        """Return the rows of the cosine transform."""
        return cosines(self.n_mfcc, self.n_mels, self.norm)

    def takes_logarithm(self) -> bool:
        """Return whether levels are natural logarithms."""
        return self.log_mels


class LFCC(Cepstrum):
    """Linear-frequency cepstral coefficients: cepstra of bands evenly spaced in Hz.

    The output has the shape (..., n_lfcc, frames). The parameters include those of `Spectrogram`.

    Examples:
        >>> import torch, torchfx as fx
        >>> wave = fx.Wave(torch.randn(1, 16_000), 16_000)
        >>> (wave | LFCC(n_lfcc=20, n_filter=40)).shape
        torch.Size([1, 20, 81])
    """

    n_filter: int = count(default=128, draws=(3, 6), doc="bands")
    f_min: float = number(default=0.0, low=0.0, unit="Hz", learnable=False, doc="lowest corner")
    f_max: float | None = number(default=None, low=0.0, unit="Hz", learnable=False, doc="highest corner; None: fs/2")
    n_lfcc: int = count(default=40, draws=(1, 3), doc="coefficients, at most n_filter")
    norm: str | None = choice(("ortho", "none"), default="ortho", doc="whether the transform's rows have length 1")
    log_lf: bool = flag(default=False, doc="whether levels are natural logarithms")
    fs: float | None = sample_rate(default=None)

    def check_parameters(self) -> None:
        """Raise if there are more coefficients than bands."""
        super().check_parameters()
        if self.n_lfcc > self.n_filter:
            raise ArgumentError(f"n_lfcc must be <= n_filter = {self.n_filter}, got {self.n_lfcc}")

    def bands(self, bins: int, rate: float) -> Tensor:
        """Return the filters."""
        return linear_bands(bins, rate, self.n_filter, self.f_min, self.f_max)

    def cosine_rows(self) -> Tensor:
        """Return the rows of the cosine transform."""
        return cosines(self.n_lfcc, self.n_filter, self.norm)

    def takes_logarithm(self) -> bool:
        """Return whether levels are natural logarithms."""
        return self.log_lf
