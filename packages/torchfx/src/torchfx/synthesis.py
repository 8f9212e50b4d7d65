"""Test signals as files: tones without aliases, sweeps, noise, silence; in blocks, without PyTorch except for noise."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from torchfx import audio_io
from torchfx.checks import finite_number, sample_rate, whole_number
from torchfx.errors import ArgumentError
from torchfx.parameters import decibels, duration, duration_samples, frequency, named

__all__ = ["KINDS", "synthesize"]

KINDS = ("sine", "square", "saw", "triangle", "chirp", "white", "pink", "brown", "silence")
NOISES = ("white", "pink", "brown")
BLOCK = 1 << 16  # frames
POINTS = 512
"""Points of a table in a period of the highest harmonic: linear interpolation is off by 2e-5 of that harmonic."""

Samples = npt.NDArray[np.float64]


def synthesize(
    kind: str,
    target: str | os.PathLike[str],
    length: float | str = 1.0,
    rate: float | str = 48_000,
    channels: int = 1,
    level_db: float | str | None = None,
    tone: float | str = 440.0,
    end: float | str | None = None,
    seed: int = 0,
    bits: int | None = None,
) -> float:
    """Write a test signal into a file.

    Square, saw and triangle have the harmonics below half the sample rate, and no aliases. A chirp's frequency rises or
    falls by equal ratios in equal times. Noises are normally distributed, and each channel has its own.

    Args:
        kind: one of `KINDS`.
        target: the file; its suffix decides the format.
        length: seconds, or a text as "250ms" or "480 samples"; at least a sample.
        rate: sample rate, Hz.
        channels: how many, >= 1.
        level_db: dB below full scale: the peak of tones and chirps, the RMS of noises; -6, and of noises -20.
        tone: frequency in Hz, in (0, rate/2); where a chirp begins.
        end: where a chirp ends; 0.45 of the rate.
        seed: of noise.
        bits: per sample; the format's usual.

    Returns:
        Its length in seconds.

    Raises:
        ArgumentError: an argument out of range.
        AudioFileError: the file cannot be written.

    Source of the chirp: A. Farina, Simultaneous Measurement of Impulse Response and Distortion with a Swept-Sine
    Technique, AES 108th Convention, 2000.
    """
    if kind not in KINDS:
        raise ArgumentError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    fs = sample_rate(rate)
    time = duration_samples(named("length", duration()).check(length, None), fs)
    if time < 1:
        raise ArgumentError(f"length must be at least one sample, got {length!r}")
    channels, seed = whole_number("channels", channels, 1), whole_number("seed", seed, 0)
    level = named("level_db", decibels(high=0.0)).check(
        (-20.0 if kind in NOISES else -6.0) if level_db is None else level_db, None
    )
    first = named("tone", frequency()).check(tone, fs)
    last = named("end", frequency()).check(0.45 * fs if end is None else end, fs)
    gain = 10 ** (finite_number("level_db", level) / 20)
    block = _block(kind, fs, time, channels, first, last, seed)
    with audio_io.Writer(target, fs, channels, bits_per_sample=bits) as writer:
        for start in range(0, time, BLOCK):
            samples = gain * block(start, min(time, start + BLOCK))
            writer.write(np.ascontiguousarray(np.broadcast_to(samples, (channels, samples.shape[-1]))))
    return time / fs


def _block(
    kind: str, fs: float, time: int, channels: int, first: float, last: float, seed: int
) -> Callable[[int, int], Samples]:
    """Return what computes the samples from a start to a stop, (stop - start,) or (channels, stop - start)."""
    if kind == "silence":
        return lambda start, stop: np.zeros(stop - start)
    if kind in NOISES:
        noises = _noise(kind, channels, seed, time)
        return lambda start, stop: next(noises)
    if kind == "chirp":
        rise = math.log(last / first)
        scale = 2 * math.pi * first * time / fs
        if abs(rise) < 1e-9:
            return lambda start, stop: np.sin(scale * np.arange(start, stop) / time)
        return lambda start, stop: np.sin(scale / rise * np.expm1(rise * np.arange(start, stop) / time))
    table = _period(kind, first, fs)
    places = np.linspace(0.0, 1.0, len(table))
    return lambda start, stop: np.interp(np.arange(start, stop) * (first / fs) % 1.0, places, table)


def _period(kind: str, tone: float, fs: float) -> Samples:
    """Return a period of a tone from its harmonics below half the sample rate, its ends included, with the peak 1."""
    count = 1 if kind == "sine" else max(1, math.ceil(fs / 2 / tone) - 1)
    n = np.arange(1, count + 1)
    odd = n % 2
    harmonics = {
        "sine": 1.0 / n,
        "square": odd / n,
        "saw": 1.0 / n,
        "triangle": odd * np.sin(n * math.pi / 2) / n**2,
    }[kind]
    size = POINTS * 2 ** math.ceil(math.log2(count + 1))
    spectrum = np.zeros(size // 2 + 1, complex)
    spectrum[1 : count + 1] = -0.5j * size * harmonics
    period = np.fft.irfft(spectrum, size)
    period = np.append(period, period[0])
    return np.asarray(period / np.abs(period).max())


def _noise(color: str, channels: int, seed: int, time: int) -> Iterator[Samples]:
    """Yield blocks (channels, <= BLOCK) of noise with the expected power 1."""
    import torch

    from torchfx.design.colored_noise import COLORS
    from torchfx.functional.noise import color_state, colored, key_of, normal, places

    key, lead = key_of(seed), 2 * COLORS[color]
    state = color_state(normal(places(torch.tensor(0), (channels,)), lead, key), color)
    for start in range(0, time, BLOCK):
        white = normal(places(torch.tensor(lead + start), (channels,)), min(BLOCK, time - start), key)
        y, state = colored(white, color, state)
        yield y.numpy()
