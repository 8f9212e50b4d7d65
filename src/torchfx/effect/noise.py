"""Noise added at a signal-to-noise ratio: made here, or from a recording."""

from __future__ import annotations

import math
import os
from typing import Any

import torch
from torch import Tensor

from torchfx import audio_io
from torchfx.core.processor import Processor
from torchfx.core.resample import Resample
from torchfx.effect.dither import CHANNEL, uniform
from torchfx.errors import ArgumentError
from torchfx.functional.noise import COLORS, add_noise, colored, drawn
from torchfx.parameters import Value, choice, count, duration, duration_samples, number, recording, sample_rate
from torchfx.rate import ambient_rate
from torchfx.rate import sample_rate as at_rate

__all__ = ["AddBackgroundNoise", "AddNoise"]

SEEDS = 0x9E3779B97F4A7C15
"""What lies between two seeds' numbers, modulo 2^62: they lie far apart."""

SNR_DOC = "of signal to noise, by their powers over the whole signal"


class AddNoise(Processor):
    """Add white, pink or brown noise at a signal-to-noise ratio.

    The ratio is that of the powers of an example, over all its channels and samples; silence stays silence. The noise
    is normally distributed, and depends on `seed`, channel and sample alone: calls repeat it, and so does each example
    of a batch. For another noise at each call and example, pass `torchfx.functional.noise` to
    `torchfx.functional.add_noise`.

    Examples:
        >>> import torch
        >>> x = torch.sin(torch.arange(48_000) / 10)
        >>> noise = AddNoise(20.0, "pink")(x) - x
        >>> round(float(10 * torch.log10(x.square().mean() / noise.square().mean())), 2)
        20.0
    """

    snr_db: Value = number(default=20.0, unit="dB", low=-200.0, high=200.0, draws=(0.0, 40.0), doc=SNR_DOC)
    color: str = choice(
        tuple(COLORS), default="white", doc="white, pink (-3.01 dB an octave) or brown (-6.02 dB an octave)"
    )
    seed: int = count(default=0, low=0, high=2**31 - 1, draws=(0, 9), doc="of the noise")

    def forward(self, x: Tensor) -> Tensor:
        """Return the noisy signal."""
        return add_noise(x, self._noise(x), self.snr_db)

    def _noise(self, x: Tensor) -> Tensor:
        time = x.shape[-1]
        at = torch.arange(drawn(time, self.color), device=x.device) + (self.seed + 1) * SEEDS % 2**62
        if x.dim() > 1:
            at = at + torch.arange(x.shape[-2], device=x.device)[:, None] * CHANNEL
        # The normal distribution's quantile, of numbers in the middle between two that `uniform` returns.
        white = torch.erfinv(2 * uniform(at, 0) - (1 - 2.0**-53)) * math.sqrt(2)
        return colored(white, self.color)[..., :time]


class AddBackgroundNoise(Processor):
    """Add a recording at a signal-to-noise ratio: its part as long as the signal, repeated where it is shorter.

    The ratio is that of the powers of an example, over all its channels and samples, as `AddNoise` has it.

    Raises:
        ArgumentError: a recording with another number of channels than the signal's, or 1.

    Examples:
        >>> import torch
        >>> hum = torch.tensor([1.0, -1.0])
        >>> AddBackgroundNoise(hum, snr_db=20.0)(torch.ones(5))
        tensor([1.1000, 0.9000, 1.1000, 0.9000, 1.1000])
    """

    noise: Any = recording(doc="what is added; a file is resampled to the signal's rate")
    snr_db: Value = number(default=20.0, unit="dB", low=-200.0, high=200.0, draws=(0.0, 40.0), doc=SNR_DOC)
    offset: float | str = duration(default="0 samples", doc="where in the recording to begin")
    fs: float | None = sample_rate(default=None)

    def forward(self, x: Tensor) -> Tensor:
        """Return the noisy signal."""
        rate = None
        if isinstance(self.noise, str) or not isinstance(self.offset, str):
            rate = self.rate_for(None if torch.compiler.is_dynamo_compiling() else ambient_rate())
        noise = recorded(self.noise, rate).to(x.device)
        if noise.dim() > 1 and noise.shape[-2] == 1:
            noise = noise.squeeze(-2)
        if noise.dim() > 1 and (x.dim() == 1 or noise.shape[-2] != x.shape[-2]):
            channels = 1 if x.dim() == 1 else x.shape[-2]
            raise ArgumentError(f"noise must have 1 channel or the signal's {channels}, got {noise.shape[-2]}")
        first = duration_samples(self.offset, rate or 1)
        at = (torch.arange(x.shape[-1], device=x.device) + first) % noise.shape[-1]
        return add_noise(x, noise[..., at], self.snr_db)


def recorded(source: str | Tensor, rate: float | None) -> Tensor:
    """Return a recording's samples, those of a file at a sample rate (Hz)."""
    if not isinstance(source, str):
        return source
    samples, fs = audio_io.load(os.fspath(source))
    with at_rate(fs):
        found: Tensor = samples if rate is None else Resample(rate)(samples.double())
    return found
