"""Bands of spectra, cepstra, levels, and what features do over time."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from torchfx import spectral
from torchfx.checks import number_text
from torchfx.compat.torchaudio import functional as F  # noqa: N812
from torchfx.compat.torchaudio.functional.spectra import bands_of
from torchfx.compat.torchaudio.transforms.spectra import Spectrogram, Window
from torchfx.errors import ArgumentError

__all__ = [
    "LFCC",
    "MFCC",
    "AmplitudeToDB",
    "ComputeDeltas",
    "FrequencyMasking",
    "InverseMelScale",
    "MelScale",
    "MelSpectrogram",
    "SlidingWindowCmn",
    "SpecAugment",
    "TimeMasking",
]


class AmplitudeToDB(nn.Module):
    """Levels in dB of powers or magnitudes; see `functional.amplitude_to_DB`.

    Args:
        stype: "power" or "magnitude".
        top_db: how far below an example's loudest value the others lie at most, dB; None: any.
    """

    def __init__(self, stype: str = "power", top_db: float | None = None) -> None:
        """Check the arguments."""
        super().__init__()
        if stype not in {"power", "magnitude"}:
            raise ArgumentError(f'stype must be "power" or "magnitude", got {stype!r}')
        if top_db is not None and top_db < 0:
            raise ArgumentError(f"top_db must be >= 0 dB, got {number_text(top_db)} dB")
        self.stype, self.top_db = stype, top_db
        self.multiplier = 10.0 if stype == "power" else 20.0
        self.amin, self.ref_value, self.db_multiplier = 1e-10, 1.0, 0.0

    def forward(self, x: Tensor) -> Tensor:
        """Return the levels, like x."""
        return F.amplitude_to_DB(x, self.multiplier, self.amin, self.db_multiplier, self.top_db)


class _Bands(nn.Module):
    """Filters (bins, n_mels) evenly spaced in mel."""

    fb: Tensor

    def __init__(
        self,
        n_stft: int,
        n_mels: int,
        sample_rate: int,
        f_min: float,
        f_max: float | None,
        norm: str | None,
        scale: str,
    ) -> None:
        super().__init__()
        self.n_mels, self.sample_rate, self.f_min, self.norm, self.mel_scale = n_mels, sample_rate, f_min, norm, scale
        self.f_max = float(sample_rate // 2) if f_max is None else f_max
        self.register_buffer("fb", F.melscale_fbanks(n_stft, f_min, self.f_max, n_mels, sample_rate, norm, scale))


class MelScale(_Bands):
    """Sums of a spectrum's bins under triangles that are evenly spaced in mel; see `functional.melscale_fbanks`."""

    def __init__(
        self,
        n_mels: int = 128,
        sample_rate: int = 16000,
        f_min: float = 0.0,
        f_max: float | None = None,
        n_stft: int = 201,
        norm: str | None = None,
        mel_scale: str = "htk",
    ) -> None:
        """Make the filters."""
        super().__init__(n_stft, n_mels, sample_rate, f_min, f_max, norm, mel_scale)

    def forward(self, specgram: Tensor) -> Tensor:
        """Return the bands (..., n_mels, frames) of spectra (..., n_stft, frames)."""
        return self.fb.T @ specgram


class InverseMelScale(_Bands):
    """The spectrum of least energy that has given mel bands, where that is not negative; elsewhere 0.

    Args:
        n_stft: bins.
        n_mels, sample_rate, f_min, f_max, norm, mel_scale: of `MelScale`.
        driver: not needed; torchaudio passes it to `torch.linalg.lstsq`.
    """

    def __init__(
        self,
        n_stft: int,
        n_mels: int = 128,
        sample_rate: int = 16000,
        f_min: float = 0.0,
        f_max: float | None = None,
        norm: str | None = None,
        mel_scale: str = "htk",
        driver: str = "gels",
    ) -> None:
        """Make the filters."""
        if driver not in {"gels", "gelsy", "gelsd", "gelss"}:
            raise ArgumentError(f'driver must be one of "gels", "gelsy", "gelsd", "gelss", got {driver!r}')
        super().__init__(n_stft, n_mels, sample_rate, f_min, f_max, norm, mel_scale)
        self.driver = driver

    def forward(self, melspec: Tensor) -> Tensor:
        """Return the spectra (..., n_stft, frames) of bands (..., n_mels, frames)."""
        if melspec.shape[-2] != self.n_mels:
            raise ArgumentError(f"melspec must have n_mels = {self.n_mels} bands, got {melspec.shape[-2]}")
        inverse: Tensor = torch.linalg.pinv(self.fb.T.double())
        return (inverse.to(melspec.dtype) @ melspec).relu()


class MelSpectrogram(nn.Module):
    """Bands of a signal's spectra, evenly spaced in mel, (..., n_mels, frames), in one pass.

    The arguments are those of `Spectrogram` and `MelScale`.

    Examples:
        >>> MelSpectrogram(16_000, n_fft=512, n_mels=40)(torch.randn(2, 16_000)).shape
        torch.Size([2, 40, 63])
    """

    def __init__(
        self,
        sample_rate: int = 16000,
        n_fft: int = 400,
        win_length: int | None = None,
        hop_length: int | None = None,
        f_min: float = 0.0,
        f_max: float | None = None,
        pad: int = 0,
        n_mels: int = 128,
        window_fn: Window = torch.hann_window,
        power: float = 2.0,
        normalized: bool = False,
        wkwargs: dict[str, Any] | None = None,
        center: bool = True,
        pad_mode: str = "reflect",
        onesided: bool | None = None,
        norm: str | None = None,
        mel_scale: str = "htk",
    ) -> None:
        """Make window and filters."""
        super().__init__()
        self.spectrogram = Spectrogram(
            n_fft, win_length, hop_length, pad, window_fn, power, normalized, wkwargs, center, pad_mode
        )
        self.mel_scale = MelScale(n_mels, sample_rate, f_min, f_max, n_fft // 2 + 1, norm, mel_scale)
        self.sample_rate, self.n_fft, self.n_mels, self.f_min, self.f_max = sample_rate, n_fft, n_mels, f_min, f_max
        self.win_length, self.hop_length = self.spectrogram.win_length, self.spectrogram.hop_length
        self.pad, self.power, self.normalized = pad, power, normalized

    def forward(self, waveform: Tensor) -> Tensor:
        """Return the bands of a waveform (..., time)."""
        of = self.spectrogram
        if of.power is None or not of.power > 0:
            raise ArgumentError(f"power must be > 0, got {of.power}")
        return bands_of(
            waveform, of.pad, *of.lengths, of.power, of.normalized, of.center, of.pad_mode, self.mel_scale.fb.T
        )


class MFCC(nn.Module):
    """Cepstra of mel bands, (..., n_mfcc, frames).

    Args:
        sample_rate: Hz.
        n_mfcc: coefficients, at most the number of bands.
        dct_type: 2.
        norm: "ortho" or None, of the cosine transform.
        log_mels: whether levels are natural logarithms of band + 1e-6, else dB, at most 80 below the loudest one.
        melkwargs: further arguments of `MelSpectrogram`.
    """

    dct_mat: Tensor

    def __init__(
        self,
        sample_rate: int = 16000,
        n_mfcc: int = 40,
        dct_type: int = 2,
        norm: str = "ortho",
        log_mels: bool = False,
        melkwargs: dict[str, Any] | None = None,
    ) -> None:
        """Make window, filters and cosines."""
        super().__init__()
        _check_dct(dct_type)
        self.sample_rate, self.n_mfcc, self.dct_type, self.norm = sample_rate, n_mfcc, dct_type, norm
        self.top_db, self.log_mels = 80.0, log_mels
        self.amplitude_to_DB = AmplitudeToDB("power", self.top_db)
        self.MelSpectrogram = MelSpectrogram(sample_rate, **(melkwargs or {}))
        if n_mfcc > self.MelSpectrogram.n_mels:
            raise ArgumentError(f"n_mfcc must be <= n_mels = {self.MelSpectrogram.n_mels}, got {n_mfcc}")
        self.register_buffer("dct_mat", F.create_dct(n_mfcc, self.MelSpectrogram.n_mels, norm))

    def forward(self, waveform: Tensor) -> Tensor:
        """Return the cepstra of a waveform (..., time)."""
        bands = self.MelSpectrogram(waveform)
        levels = (bands + 1e-6).log() if self.log_mels else self.amplitude_to_DB(bands)
        return torch.matmul(self.dct_mat.T, levels)


class LFCC(nn.Module):
    """Cepstra of bands evenly spaced in Hz, (..., n_lfcc, frames).

    Args:
        sample_rate: Hz.
        n_filter: bands.
        f_min, f_max: the lowest and the highest corner, Hz.
        n_lfcc: coefficients.
        dct_type: 2.
        norm: "ortho" or None, of the cosine transform.
        log_lf: whether levels are natural logarithms of band + 1e-6, else dB, at most 80 below the loudest one.
        speckwargs: further arguments of `Spectrogram`.
    """

    filter_mat: Tensor
    dct_mat: Tensor

    def __init__(
        self,
        sample_rate: int = 16000,
        n_filter: int = 128,
        f_min: float = 0.0,
        f_max: float | None = None,
        n_lfcc: int = 40,
        dct_type: int = 2,
        norm: str = "ortho",
        log_lf: bool = False,
        speckwargs: dict[str, Any] | None = None,
    ) -> None:
        """Make window, filters and cosines."""
        super().__init__()
        _check_dct(dct_type)
        self.sample_rate, self.f_min, self.n_filter, self.n_lfcc = sample_rate, f_min, n_filter, n_lfcc
        self.f_max = float(sample_rate // 2) if f_max is None else f_max
        self.dct_type, self.norm, self.top_db, self.log_lf = dct_type, norm, 80.0, log_lf
        self.amplitude_to_DB = AmplitudeToDB("power", self.top_db)
        self.Spectrogram = Spectrogram(**(speckwargs or {}))
        if n_lfcc > self.Spectrogram.n_fft:
            raise ArgumentError(f"n_lfcc must be <= n_fft = {self.Spectrogram.n_fft}, got {n_lfcc}")
        bins = self.Spectrogram.n_fft // 2 + 1
        self.register_buffer("filter_mat", F.linear_fbanks(bins, f_min, self.f_max, n_filter, sample_rate))
        self.register_buffer("dct_mat", F.create_dct(n_lfcc, n_filter, norm))

    def forward(self, waveform: Tensor) -> Tensor:
        """Return the cepstra of a waveform (..., time)."""
        bands = self.filter_mat.T @ self.Spectrogram(waveform)
        levels = (bands + 1e-6).log() if self.log_lf else self.amplitude_to_DB(bands)
        return torch.matmul(self.dct_mat.T, levels)


def _check_dct(dct_type: int) -> None:
    if dct_type != 2:
        raise ArgumentError(f"dct_type must be 2, got {dct_type}")


class ComputeDeltas(nn.Module):
    """The slope of each bin over time; see `torchfx.spectral.ComputeDeltas`."""

    def __init__(self, win_length: int = 5, mode: str = "replicate") -> None:
        """Check the arguments."""
        super().__init__()
        self.win_length, self.mode = win_length, mode

    def forward(self, specgram: Tensor) -> Tensor:
        """Return the slopes, like specgram (..., bins, frames)."""
        return F.compute_deltas(specgram, self.win_length, self.mode)


class SlidingWindowCmn(nn.Module):
    """Features less their running mean, (..., frames, bins); see `functional.sliding_window_cmn`."""

    def __init__(
        self, cmn_window: int = 600, min_cmn_window: int = 100, center: bool = False, norm_vars: bool = False
    ) -> None:
        """Keep the settings."""
        super().__init__()
        self.cmn_window, self.min_cmn_window, self.center, self.norm_vars = (
            cmn_window,
            min_cmn_window,
            center,
            norm_vars,
        )

    def forward(self, specgram: Tensor) -> Tensor:
        """Return the deviations, like specgram."""
        return F.sliding_window_cmn(specgram, self.cmn_window, self.min_cmn_window, self.center, self.norm_vars)


class FrequencyMasking(nn.Module):
    """Blank out a band of bins at random.

    Args:
        freq_mask_param: widest band, bins; shorter ones are equally likely.
        iid_masks: whether each example and channel has its own band.
    """

    def __init__(self, freq_mask_param: int, iid_masks: bool = False) -> None:
        """Keep the settings."""
        super().__init__()
        self.mask_param, self.iid_masks = freq_mask_param, iid_masks

    def forward(self, specgram: Tensor, mask_value: float | Tensor = 0.0) -> Tensor:
        """Return features (..., bins, frames) with `mask_value` in the band."""
        mask: Any = F.mask_along_axis_iid if self.iid_masks else F.mask_along_axis
        masked: Tensor = mask(specgram, self.mask_param, mask_value, specgram.dim() - 2)
        return masked


class TimeMasking(nn.Module):
    """Blank out a stretch of frames at random.

    Args:
        time_mask_param: longest stretch, frames; shorter ones are equally likely.
        iid_masks: whether each example and channel has its own stretch.
        p: at most this part of all frames.
    """

    def __init__(self, time_mask_param: int, iid_masks: bool = False, p: float = 1.0) -> None:
        """Check the part."""
        super().__init__()
        if not 0 <= p <= 1:
            raise ArgumentError(f"p must lie in [0, 1], got {p}")
        self.mask_param, self.iid_masks, self.p = time_mask_param, iid_masks, p

    def forward(self, specgram: Tensor, mask_value: float | Tensor = 0.0) -> Tensor:
        """Return features (..., bins, frames) with `mask_value` in the stretch."""
        mask: Any = F.mask_along_axis_iid if self.iid_masks else F.mask_along_axis
        masked: Tensor = mask(specgram, self.mask_param, mask_value, specgram.dim() - 1, self.p)
        return masked


class SpecAugment(nn.Module):
    """Blank out several stretches of frames and bands of bins; see `torchfx.spectral.SpecAugment`."""

    def __init__(
        self,
        n_time_masks: int,
        time_mask_param: int,
        n_freq_masks: int,
        freq_mask_param: int,
        iid_masks: bool = True,
        p: float = 1.0,
        zero_masking: bool = False,
    ) -> None:
        """Check the arguments."""
        super().__init__()
        self.augment = spectral.SpecAugment(
            n_time_masks, time_mask_param, n_freq_masks, freq_mask_param, iid_masks, p, zero_masking
        )

    def forward(self, specgram: Tensor) -> Tensor:
        """Return features (..., bins, frames)."""
        return self.augment.features(specgram, None)
