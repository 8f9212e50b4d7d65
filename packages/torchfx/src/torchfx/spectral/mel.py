"""Mel bands of spectra and signals."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor

from torchfx._ops.mel.cpu import Settings
from torchfx.core.feature import Feature
from torchfx.errors import ArgumentError
from torchfx.parameters import choice, count, number, sample_rate
from torchfx.spectral.filters import mel_bands
from torchfx.spectral.framed import Windowed, mel_frames
from torchfx.spectral.spectrogram import band_settings

__all__ = ["InverseMelScale", "MelScale", "MelSpectrogram"]

SCALES = ("htk", "slaney", "kaldi")


class MelScale(Feature):
    """Sum the bins of spectra with triangular mel filters.

    The input has the shape (..., n_stft, frames), the output (..., n_mels, frames). `torchfx.design.mel.mel_filters`
    has the formulas.

    Examples:
        >>> import torch
        >>> MelScale(n_mels=10, n_stft=33, fs=16_000)(torch.ones(33, 5)).shape
        torch.Size([10, 5])
    """

    takes: ClassVar[str] = "features"
    is_pointwise: ClassVar[bool] = True
    n_mels: int = count(default=128, draws=(2, 6), doc="bands")
    f_min: float = number(default=0.0, low=0.0, unit="Hz", learnable=False, doc="lowest corner")
    f_max: float | None = number(default=None, low=0.0, unit="Hz", learnable=False, doc="highest corner; None: fs/2")
    n_stft: int = count(default=201, low=2, draws=(33, 33), doc="bins of the spectrum")
    norm: str | None = choice(("slaney",), default=None, doc="whether each band is divided by half its width in Hz")
    mel_scale: str = choice(SCALES, default="htk", doc="mel formula")
    fs: float | None = sample_rate(default=None)

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return all dimensions but frames."""
        return (*shape[:-1], self.n_mels)

    def filters(self, rate: float, like: Tensor) -> Tensor:
        """Return the filters (n_mels, n_stft) with the spectrum's type and device."""
        found = mel_bands(self.n_stft, rate, self.n_mels, self.f_min, self.f_max, self.norm, self.mel_scale)
        return found.to(like.device, like.dtype)

    def features(self, x: Tensor, rate: Any) -> Tensor:
        """Return the bands of all frames."""
        if x.shape[-2] != self.n_stft:
            raise ArgumentError(f"x must have n_stft = {self.n_stft} bins, got {x.shape[-2]}")
        return self.filters(rate, x) @ x


class InverseMelScale(MelScale):
    """Estimate a spectrum from mel bands: the least-norm solution, with negative values set to 0.

    The input has the shape (..., n_mels, frames), the output (..., n_stft, frames).

    Examples:
        >>> import torch
        >>> bands = MelScale(n_mels=10, n_stft=33, fs=16_000)(torch.rand(33, 5))
        >>> InverseMelScale(n_mels=10, n_stft=33, fs=16_000)(bands).shape
        torch.Size([33, 5])
    """

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return all dimensions but frames."""
        return (*shape[:-1], self.n_stft)

    def features(self, x: Tensor, rate: Any) -> Tensor:
        """Return the spectra of all frames."""
        if x.shape[-2] != self.n_mels:
            raise ArgumentError(f"x must have n_mels = {self.n_mels} bands, got {x.shape[-2]}")
        inverse: Tensor = torch.linalg.pinv(self.filters(rate, x.double()))
        return (inverse.to(x.dtype) @ x).clamp(min=0)


class MelSpectrogram(Windowed):
    """Mel spectrogram: mel bands of the power spectra of a signal.

    The output has the shape (..., n_mels, frames) and equals `Spectrogram | MelScale`, computed in one pass.

    Examples:
        >>> import torch, torchfx as fx
        >>> wave = fx.Wave(torch.randn(2, 16_000), 16_000)
        >>> (wave | fx.filter.HiButterworth(80) | MelSpectrogram(n_fft=512, n_mels=40)).shape
        torch.Size([2, 40, 63])
    """

    n_mels: int = count(default=128, draws=(2, 6), doc="bands")
    f_min: float = number(default=0.0, low=0.0, unit="Hz", learnable=False, doc="lowest corner")
    f_max: float | None = number(default=None, low=0.0, unit="Hz", learnable=False, doc="highest corner; None: fs/2")
    power: float = number(
        default=2.0, low=0.0, open_low=True, draws=(1.0, 2.0), learnable=False, doc="exponent of the magnitude"
    )
    norm: str | None = choice(("slaney",), default=None, doc="whether each band is divided by half its width in Hz")
    mel_scale: str = choice(SCALES, default="htk", doc="mel formula")
    fs: float | None = sample_rate(default=None)

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return all dimensions but frames."""
        return (*shape, self.n_mels)

    def settings(self, x: Tensor, rate: Any) -> Settings:
        """Return the arguments of `_ops.mel_forward`."""
        bands = mel_bands(self.n_fft // 2 + 1, rate, self.n_mels, self.f_min, self.f_max, self.norm, self.mel_scale)
        return band_settings(self, x, bands.to(x.device), self.power)

    def of_frames(self, x: Tensor, rate: Any, origin: int, count: int) -> Tensor:
        """Return the bands of some frames."""
        return mel_frames(x, self.settings(x, rate), origin, count)
