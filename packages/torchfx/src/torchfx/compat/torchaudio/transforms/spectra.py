"""Short-time Fourier transforms, their inverses and uses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from torchfx.checks import number_text
from torchfx.compat.torchaudio import functional as F  # noqa: N812
from torchfx.compat.torchaudio.transforms.signals import Resampling
from torchfx.errors import ArgumentError

__all__ = ["GriffinLim", "InverseSpectrogram", "PitchShift", "SpectralCentroid", "Spectrogram", "TimeStretch", "Window"]

Window = Callable[..., Tensor]


class _Windowed(nn.Module):
    """Lengths and window of a short-time Fourier transform."""

    window: Tensor

    def __init__(
        self,
        n_fft: int,
        win_length: int | None,
        hop_length: int | None,
        window_fn: Window,
        wkwargs: dict[str, Any] | None,
    ) -> None:
        super().__init__()
        self.n_fft = n_fft
        self.win_length = n_fft if win_length is None else win_length
        self.hop_length = self.win_length // 2 if hop_length is None else hop_length
        self.register_buffer("window", window_fn(self.win_length, **(wkwargs or {})))

    @property
    def lengths(self) -> tuple[Tensor, int, int, int]:
        """Window, n_fft, hop and window length, as the functions take them."""
        return self.window, self.n_fft, self.hop_length, self.win_length


class Spectrogram(_Windowed):
    """Spectra over time, (..., bins, frames); see `functional.spectrogram`.

    Args:
        n_fft: samples that are transformed.
        win_length: samples of the window; None: n_fft.
        hop_length: samples from one frame to the next; None: half of win_length.
        pad: zeros put before and after the signal.
        window_fn: gives a window of a length.
        power: exponent of the magnitude; None: the spectra, complex.
        normalized: True or "window": divided by the root of the window's energy; "frame_length": by that of n_fft.
        wkwargs: further arguments of `window_fn`.
        center: whether frame f has its middle at sample f hop_length.
        pad_mode: what lies beyond the signal's ends where center is true.
        onesided: whether there are n_fft // 2 + 1 bins, else n_fft.
        return_complex: not needed.

    Examples:
        >>> Spectrogram(n_fft=512)(torch.randn(2, 16_000)).shape
        torch.Size([2, 257, 63])
    """

    def __init__(
        self,
        n_fft: int = 400,
        win_length: int | None = None,
        hop_length: int | None = None,
        pad: int = 0,
        window_fn: Window = torch.hann_window,
        power: float | None = 2.0,
        normalized: bool | str = False,
        wkwargs: dict[str, Any] | None = None,
        center: bool = True,
        pad_mode: str = "reflect",
        onesided: bool = True,
        return_complex: bool | None = None,
    ) -> None:
        """Make the window."""
        super().__init__(n_fft, win_length, hop_length, window_fn, wkwargs)
        self.pad, self.power, self.normalized = pad, power, normalized
        self.center, self.pad_mode, self.onesided, self.return_complex = center, pad_mode, onesided, return_complex

    def forward(self, waveform: Tensor) -> Tensor:
        """Return the spectra of a waveform (..., time)."""
        return F.spectrogram(
            waveform, self.pad, *self.lengths, self.power, self.normalized, self.center, self.pad_mode, self.onesided,
            self.return_complex,
        )  # fmt: skip


class InverseSpectrogram(_Windowed):
    """The signal of complex spectra, (..., time); see `functional.inverse_spectrogram`.

    The arguments are those of `Spectrogram`.
    """

    def __init__(
        self,
        n_fft: int = 400,
        win_length: int | None = None,
        hop_length: int | None = None,
        pad: int = 0,
        window_fn: Window = torch.hann_window,
        normalized: bool | str = False,
        wkwargs: dict[str, Any] | None = None,
        center: bool = True,
        pad_mode: str = "reflect",
        onesided: bool = True,
    ) -> None:
        """Make the window."""
        super().__init__(n_fft, win_length, hop_length, window_fn, wkwargs)
        self.pad, self.normalized, self.center, self.pad_mode, self.onesided = (
            pad,
            normalized,
            center,
            pad_mode,
            onesided,
        )

    def forward(self, spectrogram: Tensor, length: int | None = None) -> Tensor:
        """Return `length` samples (None: what the frames cover) of spectra (..., bins, frames)."""
        return F.inverse_spectrogram(
            spectrogram, length, self.pad, *self.lengths, self.normalized, self.center, self.pad_mode, self.onesided
        )


class GriffinLim(_Windowed):
    """A signal whose spectra have the magnitudes given, (..., time); see `functional.griffinlim`."""

    def __init__(
        self,
        n_fft: int = 400,
        n_iter: int = 32,
        win_length: int | None = None,
        hop_length: int | None = None,
        window_fn: Window = torch.hann_window,
        power: float = 2.0,
        wkwargs: dict[str, Any] | None = None,
        momentum: float = 0.99,
        length: int | None = None,
        rand_init: bool = True,
    ) -> None:
        """Make the window."""
        if not 0 <= momentum < 1:
            raise ArgumentError(f"momentum must lie in [0, 1), got {number_text(momentum)}")
        super().__init__(n_fft, win_length, hop_length, window_fn, wkwargs)
        self.n_iter, self.power, self.momentum, self.length, self.rand_init = n_iter, power, momentum, length, rand_init

    def forward(self, specgram: Tensor) -> Tensor:
        """Return the signal of real spectra (..., bins, frames)."""
        return F.griffinlim(
            specgram, *self.lengths, self.power, self.n_iter, self.momentum, self.length, self.rand_init
        )


class TimeStretch(nn.Module):
    """Complex spectra at another speed; see `functional.phase_vocoder`.

    Args:
        hop_length: samples from one frame to the next; None: n_freq - 1.
        n_freq: bins.
        fixed_rate: the speed, where `forward` gets none.
    """

    phase_advance: Tensor

    def __init__(self, hop_length: int | None = None, n_freq: int = 201, fixed_rate: float | None = None) -> None:
        """Compute by how much each bin's phase advances."""
        super().__init__()
        self.fixed_rate = fixed_rate
        hop = n_freq - 1 if hop_length is None else hop_length
        self.register_buffer("phase_advance", torch.linspace(0, math.pi * hop, n_freq)[..., None])

    def forward(self, complex_specgrams: Tensor, overriding_rate: float | None = None) -> Tensor:
        """Return spectra (..., bins, ceil(frames / rate))."""
        rate = self.fixed_rate if overriding_rate is None else overriding_rate
        if rate is None:
            raise ArgumentError("overriding_rate must be given if fixed_rate is not, got None")
        return F.phase_vocoder(complex_specgrams, rate, self.phase_advance.to(complex_specgrams.real.dtype))


class SpectralCentroid(_Windowed):
    """The mean frequency of each window's spectrum, Hz, (..., frames); see `functional.spectral_centroid`."""

    def __init__(
        self,
        sample_rate: int,
        n_fft: int = 400,
        win_length: int | None = None,
        hop_length: int | None = None,
        pad: int = 0,
        window_fn: Window = torch.hann_window,
        wkwargs: dict[str, Any] | None = None,
    ) -> None:
        """Make the window."""
        super().__init__(n_fft, win_length, hop_length, window_fn, wkwargs)
        self.sample_rate, self.pad = sample_rate, pad

    def forward(self, waveform: Tensor) -> Tensor:
        """Return the frequencies of a waveform (..., time)."""
        return F.spectral_centroid(waveform, self.sample_rate, self.pad, *self.lengths)


class PitchShift(_Windowed, Resampling):
    """A signal at another pitch; see `functional.pitch_shift`."""

    def __init__(
        self,
        sample_rate: int,
        n_steps: int,
        bins_per_octave: int = 12,
        n_fft: int = 512,
        win_length: int | None = None,
        hop_length: int | None = None,
        window_fn: Window = torch.hann_window,
        wkwargs: dict[str, Any] | None = None,
    ) -> None:
        """Make the window."""
        length = n_fft if win_length is None else win_length
        super().__init__(n_fft, length, length // 4 if hop_length is None else hop_length, window_fn, wkwargs)
        self.sample_rate, self.n_steps, self.bins_per_octave = sample_rate, n_steps, bins_per_octave

    def forward(self, waveform: Tensor) -> Tensor:
        """Return the signal (..., time)."""
        return F.pitch_shift(
            waveform, self.sample_rate, self.n_steps, self.bins_per_octave, self.n_fft, self.win_length,
            self.hop_length, self.window,
        )  # fmt: skip
