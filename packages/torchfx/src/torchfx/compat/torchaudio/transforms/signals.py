"""Transforms from samples to samples: rates, speeds, fades, volume, noise, companding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from torchfx.checks import number_text
from torchfx.compat.torchaudio import functional as F  # noqa: N812
from torchfx.effect.fade import SHAPES
from torchfx.errors import ArgumentError
from torchfx.functional.torchaudio import checked_resampling

__all__ = [
    "AddNoise",
    "Convolve",
    "Deemphasis",
    "FFTConvolve",
    "Fade",
    "Loudness",
    "MuLawDecoding",
    "MuLawEncoding",
    "Preemphasis",
    "Resample",
    "Resampling",
    "Speed",
    "SpeedPerturbation",
    "Vad",
    "Vol",
]


class Resampling(nn.Module):
    """A module whose states hold coefficients in torchaudio, which are computed here."""

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        for name in (f"{prefix}kernel", f"{prefix}resampler.kernel"):
            state_dict.pop(name, None)
        super()._load_from_state_dict(state_dict, prefix, *rest)


class Resample(Resampling):
    """Change the sample rate; see `functional.resample`. `torchfx.filter.Resample` suppresses aliases by 125 dB.

    Args:
        orig_freq, new_freq: the rates, Hz.
        resampling_method: "sinc_interp_hann" or "sinc_interp_kaiser".
        lowpass_filter_width: zeros of the sinc on each side.
        rolloff: the cutoff as a part of half the lower rate.
        beta: of the Kaiser window.
        dtype: not needed: coefficients are float64.

    Raises:
        ArgumentError: an argument out of range.
    """

    def __init__(
        self,
        orig_freq: int = 16000,
        new_freq: int = 16000,
        resampling_method: str = "sinc_interp_hann",
        lowpass_filter_width: int = 6,
        rolloff: float = 0.99,
        beta: float | None = None,
        *,
        dtype: torch.dtype | None = None,
    ) -> None:
        """Keep the settings."""
        super().__init__()
        checked_resampling(orig_freq, new_freq, lowpass_filter_width, rolloff, resampling_method, beta)
        self.orig_freq, self.new_freq, self.resampling_method = orig_freq, new_freq, resampling_method
        self.lowpass_filter_width, self.rolloff, self.beta = lowpass_filter_width, rolloff, beta

    def forward(self, waveform: Tensor) -> Tensor:
        """Return the signal (..., time) at the new rate."""
        return F.resample(
            waveform, self.orig_freq, self.new_freq, self.lowpass_filter_width, self.rolloff, self.resampling_method,
            self.beta,
        )  # fmt: skip


class Speed(Resampling):
    """Play a signal `factor` times as fast, as a tape does; see `functional.speed`."""

    def __init__(self, orig_freq: int, factor: float) -> None:
        """Keep rate (Hz) and factor."""
        super().__init__()
        self.orig_freq, self.factor = orig_freq, factor

    def forward(self, waveform: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """Return the signal (..., time / factor), and the new lengths or None."""
        return F.speed(waveform, self.orig_freq, self.factor, lengths)


class SpeedPerturbation(nn.Module):
    """Play a signal at a speed drawn from several at each call.

    Args:
        orig_freq: Hz.
        factors: the speeds.
    """

    def __init__(self, orig_freq: int, factors: Sequence[float]) -> None:
        """Make a module for each speed."""
        super().__init__()
        if not len(factors):
            raise ArgumentError("factors must hold at least one speed, got none")
        self.speeders = nn.ModuleList(Speed(orig_freq, factor) for factor in factors)

    def forward(self, waveform: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """Return the signal (..., time / factor), and the new lengths or None."""
        found: tuple[Tensor, Tensor | None] = self.speeders[int(torch.randint(len(self.speeders), ()))](
            waveform, lengths
        )
        return found


class Fade(nn.Module):
    """Fade a signal in and out.

    Args:
        fade_in_len, fade_out_len: samples.
        fade_shape: "linear", "quarter_sine", "half_sine", "exponential" or "logarithmic".
    """

    def __init__(self, fade_in_len: int = 0, fade_out_len: int = 0, fade_shape: str = "linear") -> None:
        """Check the shape."""
        super().__init__()
        if fade_shape not in SHAPES:
            raise ArgumentError(f"fade_shape must be one of {', '.join(SHAPES)}, got {fade_shape!r}")
        self.fade_in_len, self.fade_out_len, self.fade_shape = fade_in_len, fade_out_len, fade_shape

    def forward(self, waveform: Tensor) -> Tensor:
        """Return the signal (..., time)."""
        time = waveform.shape[-1]
        if max(self.fade_in_len, self.fade_out_len) > time:
            raise ArgumentError(f"waveform must be as long as its fades, got {time} samples")
        rising, falling = (self._gains(n, waveform) for n in (self.fade_in_len, self.fade_out_len))
        ones = torch.ones
        like: dict[str, Any] = {"dtype": waveform.dtype, "device": waveform.device}
        rise = torch.cat([rising, ones(time - self.fade_in_len, **like)])
        fall = torch.cat([ones(time - self.fade_out_len, **like), falling.flip(-1)])
        return waveform * rise * fall

    def _gains(self, length: int, like: Tensor) -> Tensor:
        at = torch.linspace(0, 1, length, dtype=torch.float64, device=like.device)
        if self.fade_shape == "logarithmic":  # torchaudio's does not begin at 0.1 of its slope, and is clipped
            return (torch.log10(0.1 + at) + 1).clamp(0, 1).to(like.dtype)
        return SHAPES[self.fade_shape](at).to(like.dtype)


class Vol(nn.Module):
    """Change the volume; the result is limited to [-1, 1].

    Args:
        gain: a factor, a ratio of powers, or dB.
        gain_type: "amplitude", "power" or "db".
    """

    def __init__(self, gain: float, gain_type: str = "amplitude") -> None:
        """Check the gain."""
        super().__init__()
        if gain_type not in {"amplitude", "power", "db"}:
            raise ArgumentError(f'gain_type must be "amplitude", "power" or "db", got {gain_type!r}')
        if gain_type in {"amplitude", "power"} and gain < 0:
            raise ArgumentError(f"gain must be >= 0 for gain_type={gain_type!r}, got {number_text(gain)}")
        self.gain, self.gain_type = gain, gain_type

    def forward(self, waveform: Tensor) -> Tensor:
        """Return the signal (..., time)."""
        factor = {"amplitude": self.gain, "power": math.sqrt(self.gain) if self.gain > 0 else 0.0}.get(
            self.gain_type, 10 ** (self.gain / 20)
        )
        return (waveform * factor).clamp(-1, 1)


class Loudness(nn.Module):
    """Integrated loudness, LKFS; see `functional.loudness`."""

    def __init__(self, sample_rate: int) -> None:
        """Keep the rate, Hz."""
        super().__init__()
        self.sample_rate = sample_rate

    def forward(self, wavefrom: Tensor) -> Tensor:
        """Return the loudness (...) of a signal (..., channels, time), an argument spelt as in torchaudio."""
        return F.loudness(wavefrom, self.sample_rate)


class Vad(nn.Module):
    """Cut off what comes before speech; see `torchfx.functional.torchaudio.vad` for the arguments."""

    def __init__(
        self,
        sample_rate: int,
        trigger_level: float = 7.0,
        trigger_time: float = 0.25,
        search_time: float = 1.0,
        allowed_gap: float = 0.25,
        pre_trigger_time: float = 0.0,
        boot_time: float = 0.35,
        noise_up_time: float = 0.1,
        noise_down_time: float = 0.01,
        noise_reduction_amount: float = 1.35,
        measure_freq: float = 20.0,
        measure_duration: float | None = None,
        measure_smooth_time: float = 0.4,
        hp_filter_freq: float = 50.0,
        lp_filter_freq: float = 6000.0,
        hp_lifter_freq: float = 150.0,
        lp_lifter_freq: float = 2000.0,
    ) -> None:
        """Keep the settings."""
        given = {name: value for name, value in locals().items() if name not in {"self", "__class__"}}
        super().__init__()
        self.settings = given

    def forward(self, waveform: Tensor) -> Tensor:
        """Return the signal (channels, time) or (time,) from where speech begins."""
        return F.vad(waveform, **self.settings)


class Convolve(nn.Module):
    """Convolution along the last axis; see `functional.convolve`."""

    def __init__(self, mode: str = "full") -> None:
        """Keep the mode: "full", "valid" or "same"."""
        super().__init__()
        self.mode = mode

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the convolution of (..., time) and (..., taps)."""
        return F.convolve(x, y, self.mode)


class FFTConvolve(Convolve):
    """The same as `Convolve`, which picks the faster way itself."""


class AddNoise(nn.Module):
    """Add noise at a ratio of both energies; see `functional.add_noise`."""

    def forward(self, waveform: Tensor, noise: Tensor, snr: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Return the sum, (..., time)."""
        return F.add_noise(waveform, noise, snr, lengths)


class Preemphasis(nn.Module):
    """y[n] = x[n] - coeff x[n-1]."""

    def __init__(self, coeff: float = 0.97) -> None:
        """Keep the coefficient."""
        super().__init__()
        self.coeff = coeff

    def forward(self, waveform: Tensor) -> Tensor:
        """Return the signal (..., time)."""
        return F.preemphasis(waveform, self.coeff)


class Deemphasis(nn.Module):
    """y[n] = x[n] + coeff y[n-1], limited to [-1, 1]."""

    def __init__(self, coeff: float = 0.97) -> None:
        """Keep the coefficient."""
        super().__init__()
        self.coeff = coeff

    def forward(self, waveform: Tensor) -> Tensor:
        """Return the signal (..., time)."""
        return F.deemphasis(waveform, self.coeff)


class MuLawEncoding(nn.Module):
    """Samples in [-1, 1] as whole numbers; see `functional.mu_law_encoding`."""

    def __init__(self, quantization_channels: int = 256) -> None:
        """Keep the number of steps."""
        super().__init__()
        self.quantization_channels = quantization_channels

    def forward(self, x: Tensor) -> Tensor:
        """Return the numbers, like x."""
        return F.mu_law_encoding(x, self.quantization_channels)


class MuLawDecoding(nn.Module):
    """The samples that `MuLawEncoding` has made whole numbers of."""

    def __init__(self, quantization_channels: int = 256) -> None:
        """Keep the number of steps."""
        super().__init__()
        self.quantization_channels = quantization_channels

    def forward(self, x_mu: Tensor) -> Tensor:
        """Return the samples, like x_mu."""
        return F.mu_law_decoding(x_mu, self.quantization_channels)
