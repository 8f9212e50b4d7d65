"""Kaldi's features with torchaudio's arguments: log-mel filter banks, cepstra, log spectra; (frames, bins).

Sources: Kaldi's feature-window.cc, feature-fbank.cc, feature-mfcc.cc, mel-computations.cc. `torchfx.spectral.LogMel`
with the preset "kaldi" gives the same filter banks in chains and streams.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from torchfx import _ops
from torchfx.checks import number_text
from torchfx.design.mel import cosine_transform
from torchfx.errors import ArgumentError
from torchfx.spectral.framed import window_taps
from torchfx.tensors import check_signal

__all__ = [
    "fbank",
    "get_mel_banks",
    "inverse_mel_scale",
    "inverse_mel_scale_scalar",
    "mel_scale",
    "mel_scale_scalar",
    "mfcc",
    "spectrogram",
    "vtln_warp_freq",
    "vtln_warp_mel_freq",
]

EPSILON = torch.finfo(torch.float32).eps
WINDOWS = ("blackman", "hamming", "hanning", "povey", "rectangular")


def inverse_mel_scale_scalar(mel_freq: float) -> float:
    """Return the frequency (Hz) at a number of mel."""
    return 700.0 * math.expm1(mel_freq / 1127.0)


def inverse_mel_scale(mel_freq: Tensor) -> Tensor:
    """Return the frequencies (Hz) at numbers of mel."""
    return 700.0 * (mel_freq / 1127.0).expm1()


def mel_scale_scalar(freq: float) -> float:
    """Return a frequency (Hz) in mel, 1127 ln(1 + freq / 700)."""
    return 1127.0 * math.log1p(freq / 700.0)


def mel_scale(freq: Tensor) -> Tensor:
    """Return frequencies (Hz) in mel."""
    return 1127.0 * (freq / 700.0).log1p()


def vtln_warp_freq(
    vtln_low_cutoff: float,
    vtln_high_cutoff: float,
    low_freq: float,
    high_freq: float,
    vtln_warp_factor: float,
    freq: Tensor,
) -> Tensor:
    """Return frequencies (Hz) warped for the length of a speaker's vocal tract: three straight pieces.

    Args:
        vtln_low_cutoff, vtln_high_cutoff: between them frequencies are divided by the factor, about; Hz.
        low_freq, high_freq: ends, which stay where they are, Hz.
        vtln_warp_factor: > 0; 1 changes nothing.
        freq: Hz; what lies outside of the ends is not changed.

    Raises:
        ArgumentError: cutoffs that don't ascend within the ends.
    """
    if not low_freq < vtln_low_cutoff < vtln_high_cutoff < high_freq:
        raise ArgumentError(
            f"low_freq, vtln_low_cutoff, vtln_high_cutoff, high_freq must ascend, got "
            f"{', '.join(map(number_text, (low_freq, vtln_low_cutoff, vtln_high_cutoff, high_freq)))} Hz"
        )
    if not vtln_warp_factor > 0:
        raise ArgumentError(f"vtln_warp_factor must be > 0, got {number_text(vtln_warp_factor)}")
    low = vtln_low_cutoff * max(1.0, vtln_warp_factor)
    high = vtln_high_cutoff * min(1.0, vtln_warp_factor)
    scale = 1.0 / vtln_warp_factor
    below = (scale * low - low_freq) / (low - low_freq)
    above = (high_freq - scale * high) / (high_freq - high)
    warped = torch.where(freq < high, scale * freq, high_freq + above * (freq - high_freq))
    warped = torch.where(freq < low, low_freq + below * (freq - low_freq), warped)
    return torch.where((freq < low_freq) | (freq > high_freq), freq, warped)


def vtln_warp_mel_freq(
    vtln_low_cutoff: float,
    vtln_high_cutoff: float,
    low_freq: float,
    high_freq: float,
    vtln_warp_factor: float,
    mel_freq: Tensor,
) -> Tensor:
    """Return numbers of mel, warped as `vtln_warp_freq` warps frequencies."""
    frequencies = inverse_mel_scale(mel_freq)
    cutoffs = vtln_low_cutoff, vtln_high_cutoff, low_freq, high_freq
    return mel_scale(vtln_warp_freq(*cutoffs, vtln_warp_factor, frequencies))


def get_mel_banks(
    num_bins: int,
    window_length_padded: int,
    sample_freq: float,
    low_freq: float,
    high_freq: float,
    vtln_low: float,
    vtln_high: float,
    vtln_warp_factor: float,
) -> tuple[Tensor, Tensor]:
    """Return triangles that are evenly spaced, and have straight sides, in mel.

    Args:
        num_bins: how many, > 3.
        window_length_padded: samples that are transformed, even.
        sample_freq: sample rate, Hz.
        low_freq, high_freq: the lowest and the highest corner, Hz; high_freq <= 0 counts from half the rate.
        vtln_low, vtln_high, vtln_warp_factor: of `vtln_warp_freq`; vtln_high < 0 counts from half the rate.

    Returns:
        The filters (num_bins, window_length_padded / 2), float32, and their centres, Hz, (num_bins,).

    Raises:
        ArgumentError: corners that don't ascend within 0 and half the rate.
    """
    banks, centres = _mel_banks(
        num_bins, window_length_padded, sample_freq, low_freq, high_freq, vtln_low, vtln_high, vtln_warp_factor
    )
    return banks.float(), centres.float()


def _mel_banks(
    num_bins: int, size: int, rate: float, low: float, high: float, vtln_low: float, vtln_high: float, warp: float
) -> tuple[Tensor, Tensor]:
    """Return filters (num_bins, size / 2) and centres, float64."""
    if num_bins <= 3:
        raise ArgumentError(f"num_bins must be > 3, got {num_bins}")
    if size % 2:
        raise ArgumentError(f"window_length_padded must be even, got {size}")
    nyquist = rate / 2
    high = high + nyquist if high <= 0 else high
    if not 0 <= low < high <= nyquist:
        raise ArgumentError(f"low_freq and high_freq must ascend within [0, {nyquist:g}] Hz, got {low:g}, {high:g}")
    vtln_high = vtln_high + nyquist if vtln_high < 0 else vtln_high
    corners = torch.linspace(mel_scale_scalar(low), mel_scale_scalar(high), num_bins + 2, dtype=torch.float64)
    if warp != 1.0:
        corners = vtln_warp_mel_freq(vtln_low, vtln_high, low, high, warp, corners)
    left, centre, right = (corners[k : k + num_bins, None] for k in range(3))
    at = mel_scale(torch.arange(size // 2, dtype=torch.float64) * (rate / size))
    # Warped corners may descend: a band's right one may lie below its centre.
    rise = torch.where((left < at) & (at <= centre), (at - left) / (centre - left), 0.0)
    fall = torch.where((centre < at) & (at < right), (right - at) / (right - centre), 0.0)
    return rise + fall, inverse_mel_scale(centre[:, 0])


@dataclass(frozen=True)
class _Frames:
    """The frames of one channel, and what becomes of each.

    Attributes:
        x: samples (time,), with what lies beyond the ends.
        taps: window (length,), float64.
        hop: samples from one frame to the next.
        count: how many frames there are.
        size: samples that are transformed.
        preemphasis: of each frame.
        centred: whether each frame's mean is subtracted.
        raw_energy: whether energies are those before preemphasis and window.
        energy_floor: lowest energy; 0: none.
    """

    x: Tensor
    taps: Tensor
    hop: int
    count: int
    size: int
    preemphasis: float
    centred: bool
    raw_energy: bool
    energy_floor: float

    def bands(self, filters: Tensor | None, power: float, log: bool) -> Tensor:
        """Return spectra, or their sums under filters, (frames, bands)."""
        gain, floor = (1.0, EPSILON) if log else (0.0, 0.0)
        found: Tensor = _ops.mel_forward(
            self.x, self.taps, filters, self.size, self.hop, 0, self.count, False, power, self.preemphasis,
            self.centred, gain, floor, 0.0,
        )  # fmt: skip
        return found.T

    def energies(self) -> Tensor:
        """Return the logarithm of each frame's energy, (frames,)."""
        frames = self.x.unfold(-1, len(self.taps), self.hop)[: self.count]
        if self.centred:
            frames = frames - frames.mean(-1, keepdim=True)
        if not self.raw_energy:
            before = torch.cat([frames[:, :1], frames[:, :-1]], dim=-1)
            frames = (frames - self.preemphasis * before) * self.taps.to(frames)
        found = frames.square().sum(-1).clamp(min=EPSILON).log()
        return found.clamp(min=math.log(self.energy_floor)) if self.energy_floor else found


def _frames(
    waveform: Tensor,
    blackman_coeff: float,
    channel: int,
    dither: float,
    energy_floor: float,
    frame_length: float,
    frame_shift: float,
    min_duration: float,
    preemphasis_coefficient: float,
    raw_energy: bool,
    remove_dc_offset: bool,
    round_to_power_of_two: bool,
    sample_frequency: float,
    snip_edges: bool,
    window_type: str,
) -> _Frames:
    """Check all arguments and return the frames of a channel; none where the signal is shorter than it should be."""
    x = check_signal(waveform)
    if x.dim() != 2 or not -1 <= channel < x.shape[0]:
        raise ArgumentError(
            f"waveform must have the shape (channels > channel = {channel}, time), got {tuple(x.shape)}"
        )
    if window_type not in WINDOWS:
        raise ArgumentError(f"window_type must be one of {', '.join(WINDOWS)}, got {window_type!r}")
    if not 0 <= preemphasis_coefficient <= 1:
        raise ArgumentError(f"preemphasis_coefficient must lie in [0, 1], got {number_text(preemphasis_coefficient)}")
    length, hop = (int(sample_frequency * each * 0.001) for each in (frame_length, frame_shift))
    if hop < 1:
        raise ArgumentError(f"frame_shift must be at least a sample, got {number_text(frame_shift)} ms")
    if length < 2:
        raise ArgumentError(f"frame_length must be at least two samples, got {number_text(frame_length)} ms")
    size = 1 << (length - 1).bit_length() if round_to_power_of_two else length
    if size % 2:
        raise ArgumentError(f"frame_length must be an even number of samples, got {size}")
    x = x[max(channel, 0)]
    time = x.shape[0]
    short = time < min_duration * sample_frequency
    if not short and length > time:
        raise ArgumentError(f"waveform must have at least a frame of {length} samples, got {time}")
    if snip_edges:
        count = 1 + (time - length) // hop
    else:  # frames have their middles in hops; beyond its ends the signal is mirrored, the sample at the edge included
        count = (time + hop // 2) // hop
        before = length // 2 - hop // 2
        head = x[:before].flip(0) if before > 0 else x[:0]
        x = torch.cat([head, x[max(0, -before) :], x.flip(0)])
    if dither:
        # Kaldi draws noise for each sample of each frame; here frames that overlap share it, as in a signal.
        x = x + dither * torch.randn_like(x)
    taps = _taps(window_type, length, blackman_coeff).to(x.device)
    return _Frames(
        x, taps, hop, 0 if short else count, size, preemphasis_coefficient, remove_dc_offset, raw_energy, energy_floor
    )


def _taps(window_type: str, length: int, blackman_coeff: float) -> Tensor:
    if window_type == "blackman":
        at = 2 * math.pi / (length - 1) * torch.arange(length, dtype=torch.float64)
        return blackman_coeff - 0.5 * at.cos() + (0.5 - blackman_coeff) * (2 * at).cos()
    name = {"hanning": "hann", "rectangular": "boxcar"}.get(window_type, window_type)
    return window_taps(name, length, symmetric=True)


def _less_mean(features: Tensor, wanted: bool) -> Tensor:
    return features - features.mean(0, keepdim=True) if wanted and len(features) else features


def spectrogram(
    waveform: Tensor,
    blackman_coeff: float = 0.42,
    channel: int = -1,
    dither: float = 0.0,
    energy_floor: float = 1.0,
    frame_length: float = 25.0,
    frame_shift: float = 10.0,
    min_duration: float = 0.0,
    preemphasis_coefficient: float = 0.97,
    raw_energy: bool = True,
    remove_dc_offset: bool = True,
    round_to_power_of_two: bool = True,
    sample_frequency: float = 16000.0,
    snip_edges: bool = True,
    subtract_mean: bool = False,
    window_type: str = "povey",
) -> Tensor:
    """Return logarithms of power spectra, (frames, bins); the first bin is replaced by the frame's log energy.

    It takes the arguments of `fbank`.
    """
    frames = _frames(
        waveform, blackman_coeff, channel, dither, energy_floor, frame_length, frame_shift, min_duration,
        preemphasis_coefficient, raw_energy, remove_dc_offset, round_to_power_of_two, sample_frequency, snip_edges,
        window_type,
    )  # fmt: skip
    found = frames.bands(None, 2.0, log=True)
    return _less_mean(torch.cat([frames.energies()[:, None], found[:, 1:]], dim=1), subtract_mean)


def fbank(
    waveform: Tensor,
    blackman_coeff: float = 0.42,
    channel: int = -1,
    dither: float = 0.0,
    energy_floor: float = 1.0,
    frame_length: float = 25.0,
    frame_shift: float = 10.0,
    high_freq: float = 0.0,
    htk_compat: bool = False,
    low_freq: float = 20.0,
    min_duration: float = 0.0,
    num_mel_bins: int = 23,
    preemphasis_coefficient: float = 0.97,
    raw_energy: bool = True,
    remove_dc_offset: bool = True,
    round_to_power_of_two: bool = True,
    sample_frequency: float = 16000.0,
    snip_edges: bool = True,
    subtract_mean: bool = False,
    use_energy: bool = False,
    use_log_fbank: bool = True,
    use_power: bool = True,
    vtln_high: float = -500.0,
    vtln_low: float = 100.0,
    vtln_warp: float = 1.0,
    window_type: str = "povey",
) -> Tensor:
    """Return mel bands, or their logarithms, (frames, num_mel_bins), and with `use_energy` a column more.

    Args:
        waveform: float32 or float64, (channels, time); Kaldi's own samples are 16-bit integers.
        blackman_coeff: of the Blackman window.
        channel: which one; -1: the first.
        dither: deviation of the noise that is added.
        energy_floor: lowest energy of a frame; 0: none.
        frame_length, frame_shift: milliseconds.
        high_freq, low_freq: the highest and the lowest corner, Hz; high_freq <= 0 counts from half the rate.
        htk_compat: whether the energy stands after the bands, else in front.
        min_duration: a shorter signal has no frames, seconds.
        num_mel_bins: bands, > 3.
        preemphasis_coefficient: of each frame, in [0, 1].
        raw_energy: whether energies are those before preemphasis and window.
        remove_dc_offset: whether each frame's mean is subtracted.
        round_to_power_of_two: whether as many samples are transformed.
        sample_frequency: Hz.
        snip_edges: whether all frames lie within the signal; else their middles lie in hops.
        subtract_mean: whether each column's mean is subtracted.
        use_energy: whether there is a column of log energies.
        use_log_fbank: whether logarithms are taken.
        use_power: whether powers are summed, else magnitudes.
        vtln_high, vtln_low, vtln_warp: of `get_mel_banks`.
        window_type: "povey", "hanning", "hamming", "blackman" or "rectangular".

    Raises:
        ArgumentError: an argument out of range, a signal shorter than a frame.

    Examples:
        >>> fbank(torch.randn(1, 16_000), num_mel_bins=80).shape
        torch.Size([98, 80])
    """
    frames = _frames(
        waveform, blackman_coeff, channel, dither, energy_floor, frame_length, frame_shift, min_duration,
        preemphasis_coefficient, raw_energy, remove_dc_offset, round_to_power_of_two, sample_frequency, snip_edges,
        window_type,
    )  # fmt: skip
    warp = vtln_low, vtln_high, vtln_warp
    filters, _ = _mel_banks(num_mel_bins, frames.size, sample_frequency, low_freq, high_freq, *warp)
    filters = torch.nn.functional.pad(filters, (0, 1)).to(frames.x.device)  # half the rate belongs to no band
    found = frames.bands(filters, 2.0 if use_power else 1.0, use_log_fbank)
    if use_energy:
        energies = frames.energies()[:, None]
        found = torch.cat([found, energies] if htk_compat else [energies, found], dim=1)
    return _less_mean(found, subtract_mean)


def mfcc(
    waveform: Tensor,
    blackman_coeff: float = 0.42,
    cepstral_lifter: float = 22.0,
    channel: int = -1,
    dither: float = 0.0,
    energy_floor: float = 1.0,
    frame_length: float = 25.0,
    frame_shift: float = 10.0,
    high_freq: float = 0.0,
    htk_compat: bool = False,
    low_freq: float = 20.0,
    num_ceps: int = 13,
    min_duration: float = 0.0,
    num_mel_bins: int = 23,
    preemphasis_coefficient: float = 0.97,
    raw_energy: bool = True,
    remove_dc_offset: bool = True,
    round_to_power_of_two: bool = True,
    sample_frequency: float = 16000.0,
    snip_edges: bool = True,
    subtract_mean: bool = False,
    use_energy: bool = False,
    vtln_high: float = -500.0,
    vtln_low: float = 100.0,
    vtln_warp: float = 1.0,
    window_type: str = "povey",
) -> Tensor:
    """Return cepstra of log-mel bands, (frames, num_ceps).

    Args:
        cepstral_lifter: coefficient k is multiplied by 1 + lifter / 2 sin(pi k / lifter); 0: not at all.
        htk_compat: whether the first coefficient stands last, and is multiplied by the root of 2 if it is no energy.
        num_ceps: coefficients, at most num_mel_bins.
        use_energy: whether the first coefficient is replaced by the log energy.

    It takes the other arguments of `fbank`.

    Raises:
        ArgumentError: an argument out of range, a signal shorter than a frame.

    Examples:
        >>> mfcc(torch.randn(1, 16_000)).shape
        torch.Size([98, 13])
    """
    if not 1 <= num_ceps <= num_mel_bins:
        raise ArgumentError(f"num_ceps must lie in [1, num_mel_bins = {num_mel_bins}], got {num_ceps}")
    bands = fbank(
        waveform, blackman_coeff, channel, dither, energy_floor, frame_length, frame_shift, high_freq, True, low_freq,
        min_duration, num_mel_bins, preemphasis_coefficient, raw_energy, remove_dc_offset, round_to_power_of_two,
        sample_frequency, snip_edges, False, use_energy, True, True, vtln_high, vtln_low, vtln_warp, window_type,
    )  # fmt: skip
    rows = torch.from_numpy(cosine_transform(num_ceps, num_mel_bins, "ortho"))
    if cepstral_lifter:
        at = torch.arange(num_ceps, dtype=torch.float64)[:, None]
        rows = rows * (1 + 0.5 * cepstral_lifter * torch.sin(math.pi * at / cepstral_lifter))
    found = bands[:, :num_mel_bins] @ rows.to(bands).T
    if use_energy:
        found = torch.cat([bands[:, num_mel_bins:], found[:, 1:]], dim=1)
    if htk_compat:
        first = found[:, :1] * (1.0 if use_energy else math.sqrt(2))
        found = torch.cat([found[:, 1:], first], dim=1)
    return _less_mean(found, subtract_mean)
