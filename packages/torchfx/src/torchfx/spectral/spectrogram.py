"""Spectra over time, and back to samples."""

from __future__ import annotations

from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.functional import pad as padded

from torchfx import _ops
from torchfx._ops.mel.composite import framed
from torchfx.core.feature import Feature
from torchfx.errors import ArgumentError
from torchfx.parameters import choice, count, flag, number, sample_rate, window
from torchfx.spectral.framed import PAD_MODES, Windowed, window_taps

__all__ = [
    "GriffinLim",
    "InverseSpectrogram",
    "SpectralCentroid",
    "Spectrogram",
    "band_powers",
    "griffin_lim",
    "overlap_added",
]

GREATEST_HOP = "hop_length must be <= win_length = {}, or samples between the windows are lost, got {}"


def band_powers(
    of: Windowed,
    x: Tensor,
    origin: int,
    count: int,
    filters: Tensor | None,
    power: float,
    gain: float = 0.0,
    floor: float = 0.0,
    offset: float = 0.0,
) -> Tensor:
    """Return bands of the spectra of frames, or gain log(max(band + offset, floor)); see `_ops/mel/schema.py`."""
    reflect = of.center and of.pad_mode == "reflect"
    found: Tensor = _ops.mel_forward(
        x, of.taps(x), filters, of.n_fft, of.hop, origin, count, reflect, power, gain=gain, floor=floor, offset=offset
    )
    return found


class Spectrogram(Windowed):
    """Spectra of windows along a signal: powers, magnitudes, or complex.

    Gives (..., n_fft // 2 + 1, frames): bin k lies at k fs / n_fft. As torchaudio's, computed as `torch.stft` does.

    Examples:
        >>> import torch
        >>> tone = torch.cos(2 * torch.pi * 0.25 * torch.arange(1000))
        >>> found = Spectrogram(n_fft=64, hop_length=32)(tone)
        >>> found.shape, found[:, 10].argmax().item()  # a quarter of the rate
        (torch.Size([33, 32]), 16)
    """

    power: float | None = number(
        default=2.0, low=0.0, open_low=True, draws=(1.0, 2.0), learnable=False,
        optional=True, doc="exponent of the magnitude; None: the spectra, complex",
    )  # fmt: skip

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return all dimensions but frames."""
        return (*shape, self.n_fft // 2 + 1)

    def of_frames(self, x: Tensor, rate: Any, origin: int, count: int) -> Tensor:
        """Return the spectra of some frames."""
        if self.power:
            return band_powers(self, x, origin, count, None, self.power)
        taps = self.taps(x).to(x.dtype)
        frames = framed(x, taps.shape[-1], self.hop, origin, count, self.center and self.pad_mode == "reflect") * taps
        left = (self.n_fft - taps.shape[-1]) // 2
        frames = padded(frames, (left, self.n_fft - taps.shape[-1] - left))
        spectra: Tensor = torch.fft.rfft(frames)
        return spectra.transpose(-1, -2)


class InverseSpectrogram(Feature):
    """The signal whose complex spectra are nearest to those given: the inverse of `Spectrogram(power=None)`.

    Takes (..., n_fft // 2 + 1, frames), complex; gives (..., time). Windowed frames are added up and divided by the sum
    of the squared windows (D. W. Griffin, J. S. Lim, Signal Estimation from Modified Short-Time Fourier Transform, IEEE
    Trans. ASSP 32 (2), 1984), as `torch.istft` does.

    Raises:
        ArgumentError: a hop above the window, or samples that no window covers.

    Examples:
        >>> import torch
        >>> x = torch.randn(2, 1000)
        >>> chain = Spectrogram(n_fft=64, power=None) | InverseSpectrogram(n_fft=64, length=1000)
        >>> bool((chain(x) - x).abs().max() < 1e-5)
        True
    """

    takes: ClassVar[str] = "features"
    gives: ClassVar[str] = "samples"
    takes_complex: ClassVar[bool] = True
    n_fft: int = count(default=400, low=2, draws=(16, 64), doc="samples that are transformed")
    win_length: int | None = count(default=None, draws=(8, 16), doc="samples of the window; None: n_fft")
    hop_length: int | None = count(
        default=None, draws=(4, 16), doc="samples from one frame to the next; None: half of win_length"
    )
    pad: int = count(default=0, low=0, draws=(0, 4), doc="zeros that were put before and behind the signal")
    window: Any = window(default="hann", doc="window")
    normalized: bool = flag(default=False, doc="whether spectra were divided by the root of the window's energy")
    center: bool = flag(default=True, doc="whether frame f has its middle at sample f hop_length")
    pad_mode: str = choice(PAD_MODES, default="reflect", doc="what lay beyond the signal's ends; changes nothing")
    length: int | None = count(default=None, doc="samples of the result; None: as many as the frames cover")

    def check_parameters(self) -> None:
        """Raise where windows don't overlap."""
        length = self.win_length or self.n_fft
        if length > self.n_fft:
            raise ArgumentError(f"win_length must be <= n_fft = {self.n_fft}, got {length}")
        if self.hop_length is not None and self.hop_length > length:
            raise ArgumentError(GREATEST_HOP.format(length, self.hop_length))

    def features(self, x: Tensor, rate: float | None) -> Tensor:
        """Return the samples."""
        if x.shape[-2] != self.n_fft // 2 + 1:
            raise ArgumentError(f"x must have n_fft // 2 + 1 = {self.n_fft // 2 + 1} bins, got {x.shape[-2]}")
        length = self.win_length or self.n_fft
        taps = window_taps(self.window, length).to(x.device)
        if self.normalized:
            x = x * taps.square().sum().sqrt().to(x.real.dtype)
        hop = self.hop_length or max(1, length // 2)
        return overlap_added(x, taps, self.n_fft, hop, self.length, self.pad, self.center)


def overlap_added(
    x: Tensor,
    taps: Tensor,
    n_fft: int,
    hop: int,
    length: int | None = None,
    pad: int = 0,
    center: bool = True,
    onesided: bool = True,
) -> Tensor:
    """Return the signal (..., time) of complex spectra (..., bins, frames): windowed frames, added up.

    Args:
        x: the spectra.
        taps: window (win_length,).
        n_fft, hop, pad, center, onesided: what the spectra were made with.
        length: samples of the result; None: as many as the frames cover.

    Raises:
        ArgumentError: samples that no window covers.
    """
    rows, whole = x.reshape(-1, *x.shape[-2:]), None if length is None else length + 2 * pad
    window = taps.to(x.real.dtype)
    try:
        y = torch.istft(rows, n_fft, hop, len(taps), window, center, onesided=onesided, length=whole)
    except RuntimeError as error:
        raise ArgumentError(
            f"window must cover every sample, and that of {len(taps)} samples, {hop} apart, does not "
            f"(center={center}): {str(error).splitlines()[0]}"
        ) from error
    y = y[..., pad : y.shape[-1] - pad]
    return y.reshape(*x.shape[:-2], y.shape[-1])


class GriffinLim(Feature):
    """A signal whose spectra have the magnitudes given, found by iteration.

    Takes (..., n_fft // 2 + 1, frames), real; gives (..., time). Source: N. Perraudin, P. Balazs, P. L. Søndergaard, A
    Fast Griffin-Lim Algorithm, WASPAA 2013; with momentum 0 it is the algorithm of Griffin and Lim, 1984.

    Examples:
        >>> import torch
        >>> tone = torch.sin(0.3 * torch.arange(2000))
        >>> again = GriffinLim(n_fft=128)(Spectrogram(n_fft=128)(tone))
        >>> powers = Spectrogram(n_fft=128)(again)[:, 10]
        >>> powers.argmax().item()  # 0.3 / (2 pi) 128
        6
    """

    takes: ClassVar[str] = "features"
    gives: ClassVar[str] = "samples"
    n_fft: int = count(default=400, low=2, draws=(16, 64), doc="samples that are transformed")
    n_iter: int = count(default=32, draws=(1, 4), doc="iterations")
    win_length: int | None = count(default=None, draws=(8, 16), doc="samples of the window; None: n_fft")
    hop_length: int | None = count(
        default=None, draws=(4, 8), doc="samples from one frame to the next; None: half of win_length"
    )
    window: Any = window(default="hann", doc="window")
    power: float = number(default=2.0, low=0.0, open_low=True, learnable=False, doc="the magnitudes' exponent")
    momentum: float = number(default=0.99, low=0.0, high=1.0, open_high=True, learnable=False, doc="of the iteration")
    length: int | None = count(default=None, doc="samples of the result; None: as many as the frames cover")
    rand_init: bool = flag(default=True, doc="whether phases begin at random, by PyTorch's generator, else at 0")

    def check_parameters(self) -> None:
        """Raise where windows don't overlap."""
        InverseSpectrogram(self.n_fft, self.win_length, self.hop_length)

    def features(self, x: Tensor, rate: float | None) -> Tensor:
        """Return the samples."""
        length = self.win_length or self.n_fft
        hop, taps = self.hop_length or max(1, length // 2), window_taps(self.window, length).to(x.device)
        magnitude = x ** (1 / self.power)
        return griffin_lim(magnitude, taps, self.n_fft, hop, self.n_iter, self.momentum, self.length, self.rand_init)


def griffin_lim(
    magnitude: Tensor,
    taps: Tensor,
    n_fft: int,
    hop: int,
    n_iter: int,
    momentum: float,
    length: int | None,
    rand_init: bool,
) -> Tensor:
    """Return a signal (..., time) whose spectra have magnitudes (..., bins, frames); see `GriffinLim`."""
    if length is not None and length // hop + 1 != magnitude.shape[-1]:
        least = (magnitude.shape[-1] - 1) * hop
        raise ArgumentError(
            f"length must lie in [{least}, {least + hop - 1}] samples for {magnitude.shape[-1]} frames, {hop} apart, "
            f"got {length}"
        )
    shape, dtype = magnitude.shape, magnitude.dtype
    magnitude, window = magnitude.reshape(-1, *shape[-2:]), taps.to(dtype)
    phase = (
        torch.rand(magnitude.shape, dtype=dtype, device=magnitude.device) * (2 * torch.pi)
        if rand_init
        else 0 * magnitude
    )
    turned = torch.polar(torch.ones_like(magnitude), phase)
    before = torch.zeros_like(turned)
    for _ in range(n_iter):
        signal = overlap_added(magnitude * turned, taps, n_fft, hop, length)
        rebuilt = torch.stft(signal, n_fft, hop, len(taps), window, return_complex=True)
        ahead = rebuilt - momentum / (1 + momentum) * before
        turned = ahead / (ahead.abs() + torch.finfo(dtype).tiny)
        before = rebuilt
    return overlap_added(magnitude * turned, taps, n_fft, hop, length).reshape(*shape[:-2], -1)


class SpectralCentroid(Windowed):
    """The mean frequency of each window's spectrum, weighted by magnitude, in Hz.

    Gives (..., 1, frames); 0 where a window is silent.

    Examples:
        >>> import torch
        >>> tone = torch.cos(2 * torch.pi * 1000 / 8000 * torch.arange(8000))
        >>> found = SpectralCentroid(n_fft=256, window="blackman", fs=8000)(tone)
        >>> bool((found[0, 2:-2] - 1000).abs().max() < 1)
        True
    """

    fs: float | None = sample_rate(default=None)

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return all dimensions but frames."""
        return (*shape, 1)

    def of_frames(self, x: Tensor, rate: Any, origin: int, count: int) -> Tensor:
        """Return the centroids of some frames."""
        magnitudes = band_powers(self, x, origin, count, None, 1.0)
        frequencies = torch.linspace(0, rate / 2, self.n_fft // 2 + 1, dtype=x.dtype, device=x.device)
        total = magnitudes.sum(-2, keepdim=True)
        return (frequencies @ magnitudes)[..., None, :] / torch.where(total > 0, total, 1.0)
