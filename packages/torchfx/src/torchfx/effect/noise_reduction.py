"""Noise reduction with a spectral gate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, pad

from torchfx.core.processor import Processor
from torchfx.effect.noise import recorded
from torchfx.effect.overlap import added_frames, frames_of, transformed
from torchfx.errors import ArgumentError
from torchfx.functional.stretching import OVERLAP, overlapping_window
from torchfx.parameters import count, number, recording, sample_rate
from torchfx.pieces import PIECE, Pieces
from torchfx.rate import ambient_rate
from torchfx.tensors import cut

__all__ = ["NoiseReduction"]

QUIETEST = 10  # one frame in 10 shows the noise if no recording of the noise is given


class NoiseReduction(Processor):
    """Spectral gate: attenuate each time-frequency bin that is no louder than the noise.

    The signal's short-time spectra are compared with the mean spectrum of the noise. Bins that do not exceed it by
    `threshold_db` are attenuated by `reduction_db`. The attenuation is smoothed over time and frequency to avoid
    musical noise. If `noise` is not given, it is estimated from the quietest tenth of each channel's non-silent frames.
    A reduction of 0 dB leaves the signal unchanged.

    Source: S. F. Boll, Suppression of Acoustic Noise in Speech Using Spectral Subtraction, IEEE Trans. Acoustics,
    Speech and Signal Processing 27 (2), 1979, for the comparison with the mean noise spectrum.

    Examples:
        >>> import torch
        >>> hiss = torch.randn(48_000, generator=torch.Generator().manual_seed(0))
        >>> less = NoiseReduction(hiss, threshold_db=9, reduction_db=20, fs=48_000)(hiss)
        >>> round(float(20 * torch.log10(less.std() / hiss.std())))
        -20
    """

    noise: Any = recording(default=None, doc="a recording of the noise alone; one channel, or as many as the signal")
    threshold_db: float = number(
        default=6.0, low=0.0, high=60.0, unit="dB", draws=(0.0, 12.0), doc="above the noise", learnable=False
    )
    reduction_db: float = number(
        default=20.0, low=0.0, high=120.0, unit="dB", draws=(0.0, 40.0), doc="attenuation of the noise", learnable=False
    )
    smooth_ms: float = number(
        default=50.0, low=0.0, high=1000.0, unit="ms", doc="over which the attenuation is averaged", learnable=False
    )
    smooth_hz: float = number(
        default=150.0, low=0.0, high=10_000.0, unit="Hz", draws=(0.0, 500.0), doc="likewise", learnable=False
    )
    n_fft: int = count(default=2048, low=16, high=65_536, draws=(256, 256), doc="samples in a window, a multiple of 4")
    fs: float | None = sample_rate(default=None)

    def check_parameters(self) -> None:
        """Raise if a parameter is invalid."""
        if self.n_fft % OVERLAP:
            raise ArgumentError(f"n_fft must be a multiple of {OVERLAP}, got {self.n_fft}")

    def refusal(self) -> str:
        """Return the reason why the processor cannot run in a stream."""
        return "needs the whole signal: attenuation is averaged over later frames, and noise may be estimated from all"

    def forward(self, x: Tensor) -> Tensor:
        """Return the signal with less noise."""
        rate = self._rate()
        n, hop, time = self.n_fft, self.n_fft // OVERLAP, x.shape[-1]
        if x.numel() == 0:
            return x
        window = overlapping_window(n, x.device).to(x.dtype)
        spectra, power = self._heard(pad(x, (n - hop, n - 1)), window)
        noise = self._given_noise(tuple(x.shape[:-1]), window, rate)
        if noise is None:
            inside = cut(power, *self._inside(time, power.shape[-2]), dim=-2)
            is_quiet, quiet = _quietest(inside.sum(-1))
            total = (inside * is_quiet[..., None].to(x.dtype)).sum(-2, dtype=torch.float64)
            noise = (total / quiet).to(x.dtype)
        loud = self._smoothed(self._loud(power, noise), self._spans(power.shape[-2], rate))
        return cut(added_frames(self._attenuated(spectra, loud, window)), n - hop, time)

    def in_pieces(self, x: Pieces) -> Iterator[Tensor]:
        """Yield the signal with less noise; if `noise` is not given, the signal is first read twice."""
        rate = self._rate()
        n, hop = self.n_fft, self.n_fft // OVERLAP
        count = -(-x.time // hop) + OVERLAP - 1
        spans = self._spans(count, rate)
        beside, at_once = spans[0], max(1, PIECE // hop, 4 * spans[0])
        dtype = x.read(0, 0).dtype
        window = overlapping_window(n, torch.device("cpu")).to(dtype)

        def heard(first: int, stop: int) -> tuple[Tensor, Tensor]:
            return self._heard(x.read((first - OVERLAP + 1) * hop, stop * hop), window)

        noise = self._given_noise(x.shape[:-1], window, rate)
        if noise is None:
            first, inside = self._inside(x.time, count)
            stop = first + inside
            stretches = [(each, min(stop, each + at_once)) for each in range(first, stop, at_once)]
            sums = torch.empty(*x.shape[:-1], stop - first, dtype=dtype)  # kept small parts would scatter the memory
            for begin, end in stretches:
                sums[..., begin - first : end - first] = heard(begin, end)[1].sum(-1)
            is_quiet, quiet = _quietest(sums)
            total = torch.zeros(*x.shape[:-1], n // 2 + 1, dtype=torch.float64)
            for begin, end in stretches:
                chosen = is_quiet[..., begin - first : end - first]
                total += (chosen[..., None, :].double() @ heard(begin, end)[1].double()).squeeze(-2)
            noise = (total / quiet).to(dtype)
        behind = torch.zeros(*x.shape[:-1], n - hop, dtype=dtype)
        for first in range(0, count, at_once):
            stop = min(count, first + at_once)
            begin, end = max(0, first - beside), min(count, stop + beside)
            spectra, power = heard(begin, end)
            inner = slice(first - begin, stop - begin)
            loud = self._smoothed(self._loud(power, noise), spans)[..., inner, :]
            y = added_frames(self._attenuated(spectra[..., inner, :], loud, window))
            length = y.shape[-1]
            y = y + pad(behind, (0, length - behind.shape[-1]))
            y, behind = y[..., : (stop - first) * hop], y[..., (stop - first) * hop :]
            place = (first - OVERLAP + 1) * hop
            yield y[..., max(0, -place) : x.time - place]

    def _rate(self) -> float:
        rate = self.rate_for(None if torch.compiler.is_dynamo_compiling() else ambient_rate())
        assert rate is not None
        return rate

    def _heard(self, x: Tensor, window: Tensor) -> tuple[Tensor, Tensor]:
        """Return spectra and power (..., frames, bins) of a signal's whole number of hops."""
        spectra = transformed(torch.fft.rfft, frames_of(x, self.n_fft // OVERLAP) * window)
        return spectra, spectra.real.square() + spectra.imag.square()

    def _inside(self, time: int, count: int) -> tuple[int, int]:
        """Return the first of a signal's frames that lie in it as a whole, and how many do; of all where none does."""
        n, hop = self.n_fft, self.n_fft // OVERLAP
        return (OVERLAP - 1, 1 + (time - n) // hop) if time >= n else (0, count)

    def _given_noise(self, shape: tuple[int, ...], window: Tensor, rate: float) -> Tensor | None:
        """Return the mean power (..., bins) of the noise's recording, if there is one."""
        n, hop = self.n_fft, self.n_fft // OVERLAP
        if self.noise is None:
            return None
        noise = recorded(self.noise, rate).to(window)
        channels = shape[-1] if shape else 1
        if noise.dim() > 1 and noise.shape[-2] not in (1, channels):
            raise ArgumentError(f"noise must have 1 channel or the signal's {channels}, got {noise.shape[-2]}")
        noise = pad(noise, (0, max(0, n - noise.shape[-1])))
        heard = torch.fft.rfft(frames_of(noise, hop) * window)
        found: Tensor = heard.abs().square().mean(-2)
        return found if shape else found.reshape(found.shape[-1:])

    def _loud(self, power: Tensor, noise: Tensor) -> Tensor:
        """Return 1 where a bin exceeds the noise by the threshold, else 0."""
        return (power > noise[..., None, :] * 10 ** (self.threshold_db / 10)).to(power.dtype)

    def _attenuated(self, spectra: Tensor, loud: Tensor, window: Tensor) -> Tensor:
        """Return the frames (..., frames, n_fft) with less noise."""
        floor = 10 ** (-self.reduction_db / 20)
        return transformed(torch.fft.irfft, spectra * (floor + (1 - floor) * loud)) * window

    def _spans(self, count: int, rate: float) -> tuple[int, int]:
        """Return over how many frames and bins on each side the attenuation is averaged."""
        frames = round(self.smooth_ms / 1000 * rate / (self.n_fft // OVERLAP) / 2)
        bins = round(self.smooth_hz * self.n_fft / rate / 2)
        return min(frames, count // 2), min(bins, (self.n_fft // 2 + 1) // 2)

    def _smoothed(self, mask: Tensor, spans: tuple[int, int]) -> Tensor:
        """Return the mean (..., frames, bins) of what lies around."""
        leading, size = mask.shape[:-2], (2 * spans[0] + 1, 2 * spans[1] + 1)
        flat = mask.flatten(0, -3) if leading else mask[None]
        found = avg_pool2d(flat, size, 1, spans, count_include_pad=False)
        return found.unflatten(0, leading) if leading else found[0]


def _quietest(total: Tensor) -> tuple[Tensor, int]:
    """Return which frames (..., frames) have the least power, of those that are not silent, and how many they are."""
    count = torch.sym_max(1, total.shape[-1] // QUIETEST)
    ranks = torch.where(total > 0, total, torch.inf).argsort(-1).argsort(-1)
    return ranks < count, count
