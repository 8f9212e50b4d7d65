"""Noise reduction by a spectral gate."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import avg_pool2d, fold, pad

from torchfx.core.processor import Processor
from torchfx.effect.noise import recorded
from torchfx.errors import ArgumentError
from torchfx.functional.stretching import OVERLAP, overlapping_window
from torchfx.parameters import count, number, recording, sample_rate
from torchfx.rate import ambient_rate

__all__ = ["NoiseReduction"]

QUIETEST = 10  # one frame in so many shows the noise, where no recording of it is given


class NoiseReduction(Processor):
    """Attenuate what is no louder than noise, in each band of frequencies and at each time.

    The short spectra of the signal are compared with the noise's mean spectrum. What does not exceed it by
    `threshold_db` is attenuated by `reduction_db`; the attenuation is smoothed over time and frequency, which keeps
    single bins from chirping. Where no `noise` is given, the quietest tenth of each channel's frames that are not
    silent shows it. At a reduction of 0 dB the signal stays as it is.

    Source: S. F. Boll, Suppression of Acoustic Noise in Speech Using Spectral Subtraction, IEEE Trans. Acoustics,
    Speech and Signal Processing 27 (2), 1979, for spectra compared with the noise's mean.

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
        default=20.0, low=0.0, high=120.0, unit="dB", draws=(0.0, 40.0), doc="what is taken off", learnable=False
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
        """Raise where a parameter cannot be used."""
        if self.n_fft % OVERLAP:
            raise ArgumentError(f"n_fft must be a multiple of {OVERLAP}, got {self.n_fft}")

    def forward(self, x: Tensor) -> Tensor:
        """Return the signal with less noise."""
        rate = self.rate_for(None if torch.compiler.is_dynamo_compiling() else ambient_rate())
        assert rate is not None
        n, hop, time = self.n_fft, self.n_fft // OVERLAP, x.shape[-1]
        window = overlapping_window(n, x.device).to(x.dtype)
        behind = -time % hop + n - hop
        if x.numel() == 0:
            return x
        spectra = torch.fft.rfft(_frames(pad(x, (n - hop, behind)), hop) * window)
        power = spectra.real.square() + spectra.imag.square()
        limit = self._noise_power(power, window, time, rate) * 10 ** (self.threshold_db / 10)
        loud = self._smoothed((power > limit[..., None, :]).to(x.dtype), rate)
        floor = 10 ** (-self.reduction_db / 20)
        frames: Tensor = torch.fft.irfft(spectra * (floor + (1 - floor) * loud), n) * window
        columns, length = frames.flatten(0, -3).mT if frames.dim() > 2 else frames.mT, time + behind + n - hop
        added_up = fold(columns, (1, length), (1, n), stride=(1, hop)).reshape(*x.shape[:-1], length)
        return added_up[..., n - hop : n - hop + time]

    def _noise_power(self, power: Tensor, window: Tensor, time: int, rate: float) -> Tensor:
        """Return the noise's mean power (..., bins)."""
        n, hop = self.n_fft, self.n_fft // OVERLAP
        if self.noise is not None:
            noise = recorded(self.noise, rate).to(window)
            channels = power.shape[-3] if power.dim() > 2 else 1
            if noise.dim() > 1 and noise.shape[-2] not in (1, channels):
                raise ArgumentError(f"noise must have 1 channel or the signal's {channels}, got {noise.shape[-2]}")
            noise = pad(noise, (0, max(0, n - noise.shape[-1])))
            heard = torch.fft.rfft(_frames(noise[..., : noise.shape[-1] // hop * hop], hop) * window)
            found: Tensor = heard.abs().square().mean(-2)
            return found.reshape(found.shape[-1:]) if power.dim() < 3 else found
        inside = power[..., OVERLAP - 1 : OVERLAP + (time - n) // hop, :] if time >= n else power
        total = inside.sum(-1)
        total = torch.where(total > 0, total, torch.inf)
        quiet = total.topk(max(1, total.shape[-1] // QUIETEST), largest=False).indices
        return inside.gather(-2, quiet[..., None].expand(*quiet.shape, inside.shape[-1])).mean(-2)

    def _smoothed(self, mask: Tensor, rate: float) -> Tensor:
        """Return the mean (..., frames, bins) of what lies around."""
        frames = round(self.smooth_ms / 1000 * rate / (self.n_fft // OVERLAP) / 2)
        bins = round(self.smooth_hz * self.n_fft / rate / 2)
        frames, bins = min(frames, mask.shape[-2] // 2), min(bins, mask.shape[-1] // 2)
        flat = mask.reshape(-1, 1, *mask.shape[-2:])
        size = (2 * frames + 1, 2 * bins + 1)
        return avg_pool2d(flat, size, 1, (frames, bins), count_include_pad=False).reshape(mask.shape)


def _frames(x: Tensor, hop: int) -> Tensor:
    """Return the frames (..., frames, OVERLAP hop) of a signal of a whole number of hops.

    `Tensor.unfold` does the same; PyTorch 2.13 has no rule for its derivative under `torch.vmap`, and warns.
    """
    pieces = x.unflatten(-1, (-1, hop))
    count = pieces.shape[-2] - OVERLAP + 1
    return torch.cat([pieces[..., i : i + count, :] for i in range(OVERLAP)], dim=-1)
