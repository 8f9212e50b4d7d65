#!/usr/bin/env python3
"""Measure what resampling does to sines: this library, soxr and the windowed sinc. Writes docs/resampling.md.

python benchmark/resampling_quality.py

Needs soxr and matplotlib (the extras test and plot).
"""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import soxr
import torch

from bench.resampling import windowed_sinc
from torchfx.filter import Resample

DOCS = Path(__file__).parents[1] / "docs"
RATES = ((44_100, 48_000), (48_000, 16_000), (44_100, 16_000))
PASSED = 0.91  # of half the lower rate: up to there ripple and images are looked for
SECONDS = 0.3
FLOOR_DB = -200.0

Convert = Callable[[np.ndarray, int, int], np.ndarray]


def ours(quality: str) -> Convert:
    return lambda x, fs, rate: Resample(rate, quality, fs=fs)(torch.from_numpy(x)).numpy()


def soxrs(quality: str) -> Convert:
    return lambda x, fs, rate: soxr.resample(x.T, fs, rate, quality=quality).T


def sinc(x: np.ndarray, fs: int, rate: int) -> np.ndarray:
    return windowed_sinc({"fs": fs, "rate": rate}, x.astype(np.float32))().numpy()


CONVERTERS: dict[str, Convert] = {
    "torchfx HQ": ours("HQ"),
    "torchfx VHQ": ours("VHQ"),
    "soxr HQ": soxrs("HQ"),
    "soxr VHQ": soxrs("VHQ"),
    "sinc, kaiser_best": sinc,
}


def decibels(ratio: np.ndarray) -> np.ndarray:
    return 20 * np.log10(np.maximum(ratio, 10 ** (FLOOR_DB / 20)))


def measured(convert: Convert, fs: int, rate: int, freqs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what of each sine (Hz) arrives at its own frequency, and all else in the output, in dB of the sine."""
    x = np.sin(2 * np.pi * freqs[:, None] * np.arange(round(SECONDS * fs)) / fs)
    y = np.asarray(convert(x, fs, rate), dtype=np.float64)
    middle = np.arange(y.shape[-1] // 4, 3 * y.shape[-1] // 4)
    window = np.hanning(len(middle))[:, None]
    gains, rest = [], []
    for freq, row in zip(freqs, y[:, middle], strict=True):
        t = 2 * np.pi * freq * middle / rate
        basis = np.stack([np.sin(t), np.cos(t)], axis=1) if freq < rate / 2 else np.zeros((len(row), 2))
        found = np.linalg.lstsq(basis * window, row * window[:, 0], rcond=None)[0]
        gains.append(np.hypot(*found))
        rest.append(np.sqrt(2 * np.mean((row - basis @ found) ** 2)))
    return decibels(np.array(gains)), decibels(np.array(rest))


def main() -> int:
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(len(RATES), 2, figsize=(11, 3.5 * len(RATES)), constrained_layout=True)
    lines = [
        "# Resampling",
        "",
        "Written by `benchmark/resampling_quality.py`. Sines in float64: what arrives at their own frequency, and what",
        "else is in the output. The windowed sinc has the settings that torchaudio's documentation calls kaiser_best",
        "(64 zeros, Kaiser window), by one `conv1d` in float32.",
        "",
        f"Ripple and images: the worst up to {PASSED:g} of half the lower rate. Aliases: the worst above half the new",
        f"rate. Nothing is measured below {FLOOR_DB:g} dB.",
    ]
    for row, (fs, rate) in zip(axes, RATES, strict=True):
        half = min(fs, rate) / 2
        passed = np.linspace(0.005, PASSED, 60) * half
        edge = np.linspace(PASSED, 0.9999, 60) * half
        beyond = np.linspace(rate / 2 * 1.0001, fs / 2 * 0.9999, 60) if rate < fs else np.zeros(0)
        lines += [
            "",
            f"## {fs} to {rate} Hz",
            "",
            "| | ripple, dB | -3 dB at, Hz | images, dB | aliases, dB |",
            "|---|---|---|---|---|",
        ]
        freqs = np.concatenate([passed, edge, beyond])
        for name, convert in CONVERTERS.items():
            gains, rest = measured(convert, fs, rate, freqs)
            inside, outside = slice(0, len(passed)), slice(len(passed) + len(edge), None)
            below = freqs[(gains < gains[0] - 3.01) & (freqs < rate / 2)]
            lines.append(
                f"| {name} | {np.abs(gains[inside] - gains[0]).max():.1e} | "
                f"{f'{below[0]:.0f}' if len(below) else 'none'} | {rest[inside].max():.0f} | "
                f"{f'{rest[outside].max():.0f}' if len(beyond) else 'none'} |"
            )
            row[0].plot(freqs[freqs < half], gains[freqs < half], label=name)
            row[1].plot(freqs, rest, label=name)
        row[0].set(title=f"{fs} to {rate} Hz: gain", xlabel="Hz", ylabel="dB", xlim=(0.85 * half, half), ylim=(-12, 1))
        row[1].set(title="everything else: images and aliases", xlabel="Hz", ylabel="dB", ylim=(FLOOR_DB, 0))
        row[0].legend(loc="lower left")
    figure.savefig(DOCS / "resampling.png", dpi=110)
    (DOCS / "resampling.md").write_text(
        "\n".join([*lines, "", "![Gain and images](resampling.png)", ""]), encoding="utf-8"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
