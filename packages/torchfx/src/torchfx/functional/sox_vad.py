"""SoX's detector of where speech begins, as torchaudio has it: by the power of the cepstrum."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from torchfx.checks import finite_number, number_text
from torchfx.checks import sample_rate as checked_rate
from torchfx.errors import ArgumentError
from torchfx.tensors import check_signal

__all__ = ["vad"]

CHUNK = 64  # measurements whose spectra are computed together: 3 s
OFFSET = 21.0  # SoX's: what a measurement is above, in nepers of power


def vad(
    waveform: Tensor,
    sample_rate: float,
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
) -> Tensor:
    """Cut what lies before the first speech off a recording; to cut its end, reverse it before and after.

    Where the search reaches back before the recording's first sample, all of it comes back; torchaudio returns its end
    then. `torchfx.voice_activity` finds all intervals with speech, in batches and in streams.

    Args:
        waveform: float32 or float64, (time,), or (..., channels, time) of one event: the earliest channel counts.
        sample_rate: Hz.
        trigger_level: the mean measurement from which on there is speech.
        trigger_time: time constant of that mean, seconds.
        search_time: how far before that moment quieter speech is looked for, seconds.
        allowed_gap: the longest gap between such pieces, seconds.
        pre_trigger_time: what is kept before all that, seconds.
        boot_time: how long the first estimate of the noise takes, seconds.
        noise_up_time, noise_down_time: time constants of the noise's estimate, seconds.
        noise_reduction_amount: how many times the noise's power is taken away.
        measure_freq: measurements in a second.
        measure_duration: of each, seconds; None: 2 / measure_freq.
        measure_smooth_time: time constant of the spectrum, seconds.
        hp_filter_freq, lp_filter_freq: which frequencies are measured, Hz.
        hp_lifter_freq, lp_lifter_freq: which pitches, Hz.

    Returns:
        The rest, (..., fewer), a view of `waveform`; without speech, its first `pre_trigger_time` seconds.

    Raises:
        ArgumentError: times or frequencies for which there is nothing to measure.

    Examples:
        >>> time = torch.arange(32_000) / 16_000
        >>> pulses = torch.sin(2 * torch.pi * 150 * time) ** 15 * (time > 1.2)
        >>> 1.0 < (32_000 - vad(pulses, 16_000).shape[-1]) / 16_000 <= 1.2
        True
    """
    waveform, fs = check_signal(waveform), checked_rate(sample_rate)
    for name, value in (("search_time", search_time), ("measure_freq", measure_freq)):
        if finite_number(name, value) <= 0:
            raise ArgumentError(f"{name} must lie in (0, inf), got {number_text(value)}")
    width = int(fs * (2 / measure_freq if measure_duration is None else measure_duration) + 0.5)
    period = int(fs / measure_freq + 0.5)
    n_fft = max(16, 1 << (width - 1).bit_length())
    low = max(1, int(hp_filter_freq / fs * n_fft + 0.5))
    high = min(n_fft // 2, int(lp_filter_freq / fs * n_fft + 0.5))
    shortest = math.ceil(fs * 0.5 / lp_lifter_freq)
    longest = min(n_fft // 4, math.floor(fs * 0.5 / hp_lifter_freq))
    if width < 1 or period < 1 or high <= low:
        raise ArgumentError(
            f"lp_filter_freq must lie above hp_filter_freq = {number_text(hp_filter_freq)} Hz by a measurement's "
            f"resolution, got {number_text(lp_filter_freq)} Hz"
        )
    if longest <= shortest:
        raise ArgumentError(
            f"lp_lifter_freq must lie above hp_lifter_freq = {number_text(hp_lifter_freq)} Hz by a sample of the "
            f"pitch, got {number_text(lp_lifter_freq)} Hz"
        )
    rows = waveform.reshape(math.prod(waveform.shape[:-1]), waveform.shape[-1])
    window, lifter = (
        torch.hann_window(size, dtype=torch.float64, device=rows.device) * (2 / math.sqrt(size))
        for size in (width, high - low)
    )
    smooth, up, down, mean_factor = (
        math.exp(-1 / (time * measure_freq))
        for time in (measure_smooth_time, noise_up_time, noise_down_time, trigger_time)
    )
    boots = int(boot_time * measure_freq - 0.5)
    kept = math.ceil(search_time * measure_freq)
    before = int(pre_trigger_time * fs + 0.5)
    gap = int(allowed_gap * measure_freq + 0.5)

    spectrum = noise = torch.zeros(len(rows), high - low, dtype=torch.float64, device=rows.device)
    measured = [[0.0] * kept for _ in rows]  # of each channel, the latest last
    means = [0.0] * len(rows)
    count = max(0, -((width - rows.shape[-1]) // period)) if len(rows) else 0
    for first in range(0, count, CHUNK):
        last = min(count, first + CHUNK)
        frames = rows[:, first * period : (last - 1) * period + width].double().unfold(-1, width, period)
        magnitudes = torch.fft.rfft(frames * window, n_fft)[..., low:high].abs()
        cleaned = []
        for k in range(first, last):
            booting = k <= boots
            factor = k / (k + 1) if booting else smooth
            spectrum = spectrum * factor + magnitudes[:, k - first] * (1 - factor)
            power = spectrum.square()
            follow = torch.zeros_like(power) if booting else torch.where(power > noise, up, down)
            noise = noise * follow + power * (1 - follow)
            cleaned.append((power - noise_reduction_amount * noise).clamp(min=0).sqrt())
        lifted = torch.nn.functional.pad(torch.stack(cleaned, dim=1) * lifter, (low, n_fft // 2 - high))
        powers = torch.fft.rfft(lifted)[..., shortest:longest].abs().square().sum(-1) / (longest - shortest)
        levels = (powers.log() + OFFSET).clamp(min=0).T.tolist()
        for k, of_channels in enumerate(levels, first):
            triggered, flushed = False, 0
            for channel, level in enumerate(of_channels):
                measured[channel] = [*measured[channel][1:], level]
                means[channel] = means[channel] * mean_factor + level * (1 - mean_factor)
                triggered = triggered or means[channel] >= trigger_level
                if triggered:
                    flushed = max(flushed, _speech_before(measured[channel][::-1], trigger_level, gap))
            if triggered:
                start = k * period - before - flushed * period
                return waveform[..., max(0, start) :]
    return waveform[..., : max(0, before)]


def _speech_before(levels: list[float], trigger_level: float, gap: int) -> int:
    """Return how many measurements before the moment belong to the speech: `levels` go back from it."""
    trigger = zero = len(levels)
    for j, level in enumerate(levels):
        if level >= trigger_level and j <= trigger + gap:
            zero = trigger = j
        elif level == 0 and trigger >= zero:
            zero = j
    return min(len(levels) - 1, zero)
