"""Spectra over time, their inverses and uses, with torchaudio's arguments: windows and filters are tensors."""

from __future__ import annotations

import math
import warnings

import torch
from torch import Tensor
from torch.nn.functional import pad as padded

from torchfx import _ops
from torchfx.checks import callers_level, number_text
from torchfx.errors import ArgumentError
from torchfx.functional.torchaudio import resample
from torchfx.spectral.framed import PAD_MODES
from torchfx.spectral.spectrogram import griffin_lim, overlap_added
from torchfx.tensors import check_signal

__all__ = [
    "bands_of",
    "griffinlim",
    "inverse_spectrogram",
    "phase_vocoder",
    "pitch_shift",
    "spectral_centroid",
    "spectrogram",
]


def spectrogram(
    waveform: Tensor,
    pad: int,
    window: Tensor | None,
    n_fft: int,
    hop_length: int | None,
    win_length: int | None,
    power: float | None,
    normalized: bool | str,
    center: bool = True,
    pad_mode: str = "reflect",
    onesided: bool = True,
    return_complex: bool | None = None,
) -> Tensor:
    """Return spectra over time.

    Args:
        waveform: float32 or float64, (..., time).
        pad: zeros put before and after the signal.
        window: (win_length,); None: ones.
        n_fft: samples that are transformed.
        hop_length: samples from one frame to the next; None: n_fft // 4.
        win_length: samples of the window; None: n_fft.
        power: exponent of the magnitude; None: the spectra, complex.
        normalized: True or "window": divided by the root of the window's energy; "frame_length": by that of n_fft.
        center: whether frame f has its middle at sample f hop_length.
        pad_mode: what lies beyond the signal's ends where center is true.
        onesided: whether there are n_fft // 2 + 1 bins, else n_fft.
        return_complex: not needed.

    Returns:
        (..., bins, frames).

    Raises:
        ArgumentError: a signal shorter than a window, a window of another length.

    Examples:
        >>> spectrogram(torch.randn(2, 400), 0, torch.hann_window(64), 64, 32, 64, 2.0, False).shape
        torch.Size([2, 33, 13])
    """
    _tell_of(return_complex)
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    window = torch.ones(win_length, device=waveform.device) if window is None else window
    if onesided and power in (1, 2):
        return bands_of(waveform, pad, window, n_fft, hop_length, win_length, power, normalized, center, pad_mode)
    waveform = check_signal(waveform)
    window = _checked(window, n_fft, hop_length, win_length)
    by_window, by_length = _normalization(normalized)
    x = padded(waveform, (pad, pad)) if pad else waveform
    if center:
        _check_edges(x, n_fft // 2, pad_mode)
    _check_frame(x.shape[-1] + (n_fft // 2 * 2 if center else 0), n_fft)
    found = torch.stft(
        x.reshape(-1, x.shape[-1]), n_fft, hop_length, win_length, window.to(x.dtype), center, pad_mode, by_length,
        onesided, return_complex=True,
    )  # fmt: skip
    found = found.reshape(*x.shape[:-1], *found.shape[-2:])
    if by_window:
        found = found / window.double().square().sum().sqrt().to(x.dtype)
    return found if power is None else found.abs() if power == 1 else found.abs().pow(power)


def bands_of(
    waveform: Tensor,
    pad: int,
    window: Tensor,
    n_fft: int,
    hop_length: int,
    win_length: int,
    power: float,
    normalized: bool | str,
    center: bool = True,
    pad_mode: str = "reflect",
    filters: Tensor | None = None,
) -> Tensor:
    """Return powers or magnitudes, or sums of them under filters (bands, n_fft // 2 + 1), in one pass.

    The other arguments are those of `spectrogram`.
    """
    x = check_signal(waveform)
    taps = _checked(window, n_fft, hop_length, win_length).to(x.device, torch.float64)
    by_window, by_length = _normalization(normalized)
    if by_window:
        taps = taps / taps.square().sum().sqrt()
    elif by_length:
        taps = taps / math.sqrt(n_fft)
    side, left = n_fft // 2 if center else 0, (n_fft - win_length) // 2
    x = padded(x, (pad, pad)) if pad else x
    if center:
        _check_edges(x, side, pad_mode)
    _check_frame(x.shape[-1] + 2 * side, n_fft)
    count = (x.shape[-1] + 2 * side - n_fft) // hop_length + 1
    if pad_mode not in {"reflect", "constant"} and side:
        x, side = padded(x.reshape(1, -1, x.shape[-1]), (side, side), mode=pad_mode).reshape(*x.shape[:-1], -1), 0
    weights = None if filters is None else filters.to(x.device, torch.float64)
    found: Tensor = _ops.mel_forward(
        x, taps, weights, n_fft, hop_length, side - left, count, center and pad_mode == "reflect", float(power)
    )
    return found


def inverse_spectrogram(
    spectrogram: Tensor,
    length: int | None,
    pad: int,
    window: Tensor,
    n_fft: int,
    hop_length: int,
    win_length: int,
    normalized: bool | str,
    center: bool = True,
    pad_mode: str = "reflect",
    onesided: bool = True,
) -> Tensor:
    """Return the signal of complex spectra, (..., time).

    Args:
        spectrogram: complex, (..., bins, frames).
        length: samples of the result; None: as many as the frames cover, those of `pad` among them.
        pad, window, n_fft, hop_length, win_length, normalized, center, pad_mode, onesided: of `spectrogram`.

    Raises:
        ArgumentError: real spectra, samples that no window covers.

    Examples:
        >>> x, window = torch.randn(2, 400), torch.hann_window(64)
        >>> spectra = spectrogram(x, 0, window, 64, 32, 64, None, False)
        >>> bool((inverse_spectrogram(spectra, 400, 0, window, 64, 32, 64, False) - x).abs().max() < 1e-5)
        True
    """
    if not spectrogram.is_complex():
        raise ArgumentError(f"spectrogram must be complex, got {spectrogram.dtype}")
    window = _checked(window, n_fft, hop_length, win_length)
    by_window, by_length = _normalization(normalized)
    if by_window:
        spectrogram = spectrogram * window.double().square().sum().sqrt().to(spectrogram.real.dtype)
    elif by_length:
        spectrogram = spectrogram * math.sqrt(n_fft)
    return overlap_added(spectrogram, window, n_fft, hop_length, length, pad if length else 0, center, onesided)


def griffinlim(
    specgram: Tensor,
    window: Tensor,
    n_fft: int,
    hop_length: int,
    win_length: int,
    power: float,
    n_iter: int,
    momentum: float,
    length: int | None,
    rand_init: bool,
) -> Tensor:
    """Return a signal whose spectra have the magnitudes given, (..., time); see `torchfx.spectral.GriffinLim`.

    Args:
        specgram: real, (..., n_fft // 2 + 1, frames).
        window: (win_length,).
        n_fft, hop_length, win_length: of `spectrogram`.
        power: the magnitudes' exponent.
        n_iter: iterations.
        momentum: in [0, 1).
        length: samples of the result; None: as many as the frames cover.
        rand_init: whether phases begin at random, else at 0.

    Raises:
        ArgumentError: a momentum out of range.
    """
    if not 0 <= momentum < 1:
        raise ArgumentError(f"momentum must lie in [0, 1), got {number_text(momentum)}")
    window = _checked(window, n_fft, hop_length, win_length)
    return griffin_lim(specgram ** (1 / power), window, n_fft, hop_length, n_iter, momentum, length, rand_init)


def phase_vocoder(complex_specgrams: Tensor, rate: float, phase_advance: Tensor) -> Tensor:
    """Return spectra `rate` times as fast, with the pitch they have.

    Between two frames magnitudes are interpolated, and phases go on as fast as they went there. Source: M. Dolson, The
    Phase Vocoder: A Tutorial, Computer Music Journal 10 (4), 1986.

    Args:
        complex_specgrams: complex, (..., bins, frames).
        rate: > 1 is faster.
        phase_advance: by how much each bin's phase advances from frame to frame, radians, (bins, 1).

    Returns:
        (..., bins, ceil(frames / rate)).

    Raises:
        ArgumentError: a rate that is not positive.

    Examples:
        >>> advance = torch.linspace(0, torch.pi * 32, 33)[:, None]
        >>> phase_vocoder(torch.randn(2, 33, 50, dtype=torch.complex64), 1.3, advance).shape
        torch.Size([2, 33, 39])
    """
    if not rate > 0:
        raise ArgumentError(f"rate must be > 0, got {number_text(rate)}")
    if rate == 1.0:
        return complex_specgrams
    real = complex_specgrams.real.dtype
    at = torch.arange(0, complex_specgrams.shape[-1], rate, dtype=real, device=complex_specgrams.device)
    index, part = at.long(), at % 1.0
    ahead = padded(complex_specgrams, (0, 2))
    first, second = ahead[..., index], ahead[..., index + 1]
    moved = second.angle() - first.angle() - phase_advance
    moved = moved - 2 * math.pi * torch.round(moved / (2 * math.pi)) + phase_advance
    phase = torch.cat([complex_specgrams[..., :1].angle(), moved[..., :-1]], dim=-1).cumsum(-1)
    return torch.polar(part * second.abs() + (1 - part) * first.abs(), phase)


def pitch_shift(
    waveform: Tensor,
    sample_rate: int,
    n_steps: int,
    bins_per_octave: int = 12,
    n_fft: int = 512,
    win_length: int | None = None,
    hop_length: int | None = None,
    window: Tensor | None = None,
) -> Tensor:
    """Return a signal at another pitch, (..., time); `torchfx.effect.PitchShift` keeps attacks and runs in streams.

    Args:
        waveform: float32 or float64, (..., time).
        sample_rate: Hz.
        n_steps: how far up, of `bins_per_octave` to the octave.
        bins_per_octave: steps of an octave.
        n_fft, win_length, hop_length: of `spectrogram`; None: n_fft, and a quarter of the window.
        window: (win_length,); None: Hann's.

    Examples:
        >>> pitch_shift(torch.randn(1, 4000), 16_000, 4).shape
        torch.Size([1, 4000])
    """
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    window = torch.hann_window(win_length, device=waveform.device) if window is None else window
    rate = 2.0 ** (-n_steps / bins_per_octave)
    spectra = spectrogram(waveform, 0, window, n_fft, hop_length, win_length, None, False)
    advance = torch.linspace(0, math.pi * hop_length, spectra.shape[-2], device=waveform.device)[..., None]
    stretched = phase_vocoder(spectra, rate, advance.to(waveform.dtype))
    time = waveform.shape[-1]
    slow = overlap_added(stretched, window, n_fft, hop_length, round(time / rate), 0, True, True)
    found = resample(slow, int(sample_rate / rate), sample_rate)
    return found[..., :time] if found.shape[-1] > time else padded(found, (0, time - found.shape[-1]))


def spectral_centroid(
    waveform: Tensor,
    sample_rate: int,
    pad: int,
    window: Tensor,
    n_fft: int,
    hop_length: int,
    win_length: int,
) -> Tensor:
    """Return the mean frequency of each window's spectrum, weighted by magnitude, Hz, (..., frames).

    The arguments are those of `spectrogram`. Of a silent window it is NaN.

    Examples:
        >>> tone = torch.cos(2 * torch.pi * 1000 / 8000 * torch.arange(8000))
        >>> found = spectral_centroid(tone, 8000, 0, torch.blackman_window(256), 256, 128, 256)
        >>> bool((found[2:-2] - 1000).abs().max() < 1)
        True
    """
    magnitudes = bands_of(waveform, pad, window, n_fft, hop_length, win_length, 1.0, False)
    frequencies = torch.linspace(0, sample_rate // 2, n_fft // 2 + 1).to(magnitudes)
    weighted: Tensor = frequencies @ magnitudes
    return weighted / magnitudes.sum(-2)


def _normalization(normalized: bool | str) -> tuple[bool, bool]:
    """Return whether spectra are divided by the root of the window's energy, and whether by that of n_fft."""
    if isinstance(normalized, str):
        if normalized not in {"window", "frame_length"}:
            raise ArgumentError(f"normalized must be a bool, 'window' or 'frame_length', got {normalized!r}")
        return normalized == "window", normalized == "frame_length"
    return normalized, False


def _checked(window: Tensor, n_fft: int, hop_length: int, win_length: int) -> Tensor:
    if window.dim() != 1 or window.shape[0] != win_length or not 1 <= win_length <= n_fft:
        shape = tuple(window.shape)
        raise ArgumentError(
            f"window must have the shape (win_length,) with 1 <= win_length <= n_fft = {n_fft}, got {shape} "
            f"and win_length = {win_length}"
        )
    if hop_length < 1:
        raise ArgumentError(f"hop_length must be >= 1, got {hop_length}")
    return window


def _check_edges(x: Tensor, side: int, pad_mode: str) -> None:
    if pad_mode not in PAD_MODES:
        raise ArgumentError(f"pad_mode must be one of {', '.join(PAD_MODES)}, got {pad_mode!r}")
    least = {"reflect": side + 1, "circular": side}.get(pad_mode, 1)
    if x.shape[-1] < least:
        raise ArgumentError(
            f"waveform must have at least {least} samples where its ends are of mode {pad_mode!r}, got {x.shape[-1]}"
        )


def _check_frame(time: int, n_fft: int) -> None:
    if time < n_fft:
        raise ArgumentError(f"waveform must have at least n_fft = {n_fft} samples with its padding, got {time}")


def _tell_of(return_complex: bool | None) -> None:
    if return_complex is not None:
        warnings.warn(
            "return_complex changes nothing: spectra are complex where power is None",
            UserWarning,
            stacklevel=callers_level(),
        )
