"""Log-mel features, as the speech recognizers of several projects compute them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from torchfx._ops.mel.cpu import Settings
from torchfx.checks import number_text
from torchfx.errors import ArgumentError, SampleRateError
from torchfx.parameters import choice, count, flag, sample_rate
from torchfx.spectral.filters import mel_bands
from torchfx.spectral.framed import Framed, Framing, mel_frames, window_taps
from torchfx.spectral.levels import limited, raised

__all__ = ["PRESETS", "LogMel", "Preset"]

NATURAL, DECIMAL, DECIBELS = 1.0, 1 / math.log(10), 10 / math.log(10)


@dataclass(frozen=True)
class Preset:
    """Settings of a project's features.

    Attributes:
        length, hop: window length and hop: samples (int) or seconds (float).
        n_fft: samples of each transform; 0: the next power of two.
        n_mels: default number of bands.
        mel_scale, norm: of the filters, see `torchfx.design.mel.mel_filters`.
        gain, floor, offset: the logarithm is gain log(max(band + offset, floor)).
        rate: the sample rate (Hz) of the project; None: any.
        window: name of the window; `symmetric` if it is symmetric instead of periodic.
        center: whether frame f is centred at sample f * hop.
        reflect: whether the padding reflects the signal instead of zeros.
        whole_hops: whether the number of frames is the number of complete hops.
        f_min: lower edge of the lowest band, Hz.
        scale: factor on the samples.
        preemphasis: pre-emphasis coefficient of each frame; `whole_preemphasis`: of the whole signal.
        centred: whether each frame's mean is subtracted.
        needs_whole: whether the last step needs all frames.
    """

    length: float
    hop: float
    n_fft: int
    n_mels: int
    mel_scale: str
    norm: str
    gain: float
    floor: float = 0.0
    offset: float = 0.0
    rate: float | None = None
    window: str = "hann"
    symmetric: bool = False
    center: bool = True
    reflect: bool = True
    whole_hops: bool = False
    f_min: float = 0.0
    scale: float = 1.0
    preemphasis: float = 0.0
    whole_preemphasis: float = 0.0
    centred: bool = False
    needs_whole: bool = False

    def samples(self, rate: float) -> tuple[int, int, int]:
        """Return window length, hop and transform length in samples."""
        length = self.length if isinstance(self.length, int) else int(rate * self.length)
        hop = self.hop if isinstance(self.hop, int) else int(rate * self.hop)
        return length, hop, self.n_fft or 1 << (length - 1).bit_length()


PRESETS = {
    # openai/whisper, whisper/audio.py, log_mel_spectrogram: (log10(max(power, 1e-10)) + 4) / 4. Samples times 100 have
    # 10^4 times the power, whose logarithm contains the 4: no second pass over the result adds it.
    "whisper": Preset(
        400, 160, 400, 80, "slaney", "slaney", DECIMAL / 4, 1e-6, rate=16_000, whole_hops=True, scale=100.0,
        needs_whole=True,
    ),
    # kaldi, feat/feature-window.h and feature-fbank.h: their defaults without dither, of samples as 16-bit integers
    "kaldi": Preset(
        0.025, 0.01, 0, 23, "kaldi", "none", NATURAL, 1.1920928955078125e-07, window="povey", center=False,
        reflect=False, f_min=20.0, scale=32768.0, preemphasis=0.97, centred=True,
    ),
    # librosa.power_to_db(librosa.feature.melspectrogram(...))
    "librosa": Preset(2048, 512, 2048, 128, "slaney", "slaney", DECIBELS, 1e-10, reflect=False, needs_whole=True),
    # NeMo, AudioToMelSpectrogramPreprocessor without dither and padding to 16 frames
    "nemo": Preset(
        0.02, 0.01, 0, 64, "slaney", "slaney", NATURAL, 0.0, 2.0**-24, rate=16_000, symmetric=True, reflect=False,
        whole_hops=True, whole_preemphasis=0.97, needs_whole=True,
    ),
    # torchaudio.transforms.MelSpectrogram, then AmplitudeToDB
    "torchaudio": Preset(400, 200, 400, 128, "htk", "none", DECIBELS, 1e-10),
}  # fmt: skip


class LogMel(Framed):
    """Log-mel features, exactly as a project computes them for its models.

    ============ ============================================================================================
    whisper      16 kHz; 10^-8 of the loudest band at least, for each channel; (log10 + 4) / 4; 80 bands
    kaldi        `compute-fbank-feats` without dither, of samples in [-1, 1) read as 16-bit integers; 23 bands
    librosa      `power_to_db(melspectrogram(...))`: 128 bands, no more than 80 dB below the loudest one
    nemo         16 kHz; each band less its mean and divided by its deviation over time; 64 bands
    torchaudio   `MelSpectrogram`, then `AmplitudeToDB`, 128 bands
    ============ ============================================================================================

    The output has the shape (..., n_mels, frames). Steps that depend on all frames (the maximum of whisper and librosa,
    nemo's mean and standard deviation) need the whole signal; `normalize=False` omits them, for streams.

    Raises:
        SampleRateError: the signal does not have the preset's sample rate.

    Examples:
        >>> import torch, torchfx as fx
        >>> wave = fx.Wave(torch.randn(1, 44_100), 44_100)
        >>> (wave | fx.filter.Resample(16_000) | LogMel("whisper")).shape
        torch.Size([1, 80, 100])
        >>> wave | LogMel("whisper")
        Traceback (most recent call last):
        torchfx.errors.SampleRateError: preset 'whisper' is for 16000 Hz, and the signal has 44100 Hz: resample it \
first, wave | torchfx.filter.Resample(16000) | LogMel(...)
    """

    preset: str = choice(tuple(PRESETS), doc="whose features")
    n_mels: int | None = count(default=None, draws=(4, 8), doc="bands; None: the preset's")
    normalize: bool = flag(default=True, doc="whether the step that needs all frames is done")
    fs: float | None = sample_rate(default=None)

    def check_parameters(self) -> None:
        """Raise if the rate contradicts the preset."""
        if self.fs is not None:
            self.rate_for(self.fs)

    @property
    def required_rate(self) -> float | None:
        """The sample rate (Hz) of the preset; None: any."""
        return PRESETS[self.preset].rate

    def rate_for(self, rate: float | None) -> float | None:
        """Return the rate (Hz) to work at, or raise if the preset needs another rate."""
        fixed = self.required_rate
        for given in (rate, self.fs):
            if fixed is not None and given is not None and given != fixed:
                raise SampleRateError(
                    f"preset {self.preset!r} is for {number_text(fixed)} Hz, and the signal has {number_text(given)} "
                    f"Hz: resample it first, wave | torchfx.filter.Resample({number_text(fixed)}) | LogMel(...)"
                )
        return fixed if rate is None and self.fs is None and fixed is not None else super().rate_for(rate)

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return all dimensions but frames."""
        return (*shape, self.n_mels or PRESETS[self.preset].n_mels)

    def refusal(self) -> str:
        """Return the reason why the processor cannot run in a stream, or ""."""
        if PRESETS[self.preset].needs_whole and self.normalize:
            return "needs the whole signal for its last step, which normalize=False leaves out"
        return ""

    def framing(self, rate: Any) -> Framing:
        """Return the positions of the frames."""
        preset = PRESETS[self.preset]
        length, hop, n_fft = preset.samples(rate)
        if length < 2 or hop < 1:
            raise ArgumentError(f"fs must be large enough for windows of {preset.length} s, got {number_text(rate)} Hz")
        if not preset.center:
            return Framing(length, hop, 0, 0, reflect=False)
        left = (n_fft - length) // 2
        right, side = n_fft - length - left, n_fft // 2
        return Framing(length, hop, side - left, side - right, preset.reflect, preset.whole_hops)

    def features(self, x: Tensor, rate: Any) -> Tensor:
        """Return the features of all frames."""
        found = super().features(x, rate)
        if self.normalize and self.preset == "librosa":
            found = limited(found, 80.0)
        elif self.normalize and self.preset == "nemo":
            if found.shape[-1] < 2:
                raise ArgumentError("x must have at least two frames, whose deviation is normalised, got 1")
            found = (found - found.mean(-1, keepdim=True)) / (found.std(-1, keepdim=True) + 1e-5)
        elif self.normalize and self.preset == "whisper":
            found = raised(found, found.amax((-2, -1), keepdim=True) - 2.0)
        return found

    def settings(self, x: Tensor, rate: Any) -> Settings | None:
        """Return the arguments of `_ops.mel_forward`; None where samples are filtered before."""
        return None if PRESETS[self.preset].whole_preemphasis else self._arguments(x, rate)

    def _arguments(self, x: Tensor, rate: Any) -> Settings:
        preset = PRESETS[self.preset]
        length, hop, n_fft = preset.samples(rate)
        bands = self.n_mels or preset.n_mels
        filters = mel_bands(n_fft // 2 + 1, rate, bands, preset.f_min, None, preset.norm, preset.mel_scale)
        taps = window_taps(preset.window, length, preset.symmetric)
        taps = taps if preset.scale == 1 else taps * preset.scale
        levels = preset.gain, preset.floor, preset.offset
        before = taps.to(x.device), filters.to(x.device), n_fft, hop
        return before, (preset.reflect, 2.0, preset.preemphasis, preset.centred, *levels)

    def of_frames(self, x: Tensor, rate: Any, origin: int, count: int) -> Tensor:
        """Return the logarithms of some frames."""
        coefficient = PRESETS[self.preset].whole_preemphasis
        if coefficient:  # in a stream x may begin inside the signal: no frame reaches back to its first sample
            x = torch.cat([x[..., :1], x[..., 1:] - coefficient * x[..., :-1]], dim=-1)
        return mel_frames(x, self._arguments(x, rate), origin, count)
