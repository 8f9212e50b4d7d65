"""Where the bands of filter banks lie: scales of frequency, fractional octaves, and gammatone filters."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Literal

import torch
from torch import Tensor

from torchfx.checks import finite_number, number_text, settled, whole_number
from torchfx.checks import sample_rate as checked_rate
from torchfx.errors import ArgumentError
from torchfx.parameters import choice, frequency, named

__all__ = [
    "OCTAVE",
    "SCALES",
    "Scale",
    "check_range",
    "equivalent_rectangular_bandwidth",
    "gammatone",
    "octave_bands",
    "spaced",
]

Scale = Literal["log", "mel", "erb"]
SCALES = ("log", "mel", "erb")

OCTAVE = 10**0.3  # the octave ratio G of IEC 61260-1:2014, 5.2
REFERENCE_HZ = 1000.0  # likewise

WARPS: Mapping[str, tuple[Callable[[float], float], Callable[[float], float]]] = {
    "log": (math.log, math.exp),
    # O'Shaughnessy, Speech Communication, 1987; HTK's formula.
    "mel": (lambda f: 2595 * math.log10(1 + f / 700), lambda m: 700 * (10 ** (m / 2595) - 1)),
    # Glasberg and Moore, Derivation of auditory filter shapes from notched-noise data, 1990.
    "erb": (lambda f: 21.4 * math.log10(1 + 0.00437 * f), lambda e: (10 ** (e / 21.4) - 1) / 0.00437),
}
"""Each scale as a function of frequency (Hz), and its inverse."""

FREQUENCY, SCALE = named("centre", frequency()), named("scale", choice(SCALES))


def spaced(f_min: float, f_max: float, count: int, scale: Scale) -> list[float]:
    """Return `count` frequencies (Hz) at equal distances on a scale, both ends included.

    Args:
        f_min, f_max: Hz, ascending.
        count: >= 2.
        scale: "log", "mel" (HTK's) or "erb" (the number of equivalent rectangular bandwidths below a frequency).

    Examples:
        >>> [round(f) for f in spaced(125, 8000, 7, "log")]
        [125, 250, 500, 1000, 2000, 4000, 8000]
    """
    f_min, f_max = check_range(f_min, f_max)
    steps = whole_number("count", count, 2) - 1
    warp, unwarp = WARPS[SCALE.check(scale, None)]
    low, high = warp(f_min), warp(f_max)
    inner = [unwarp(low + (high - low) * i / steps) for i in range(1, steps)]
    return [f_min, *inner, f_max]


def octave_bands(fraction: int, f_min: float, f_max: float) -> tuple[list[float], list[tuple[float, float]]]:
    """Return exact mid-band frequencies and band edges (Hz) of fractional octaves.

    Source: IEC 61260-1:2014, 5.2 to 5.6, base 10: midbands are 1000 Hz times powers of 10^(0.3 / fraction), moved by
    half a band for even fractions.

    Args:
        fraction: bands in an octave, >= 1.
        f_min, f_max: Hz, ascending; the first and last band are those with midbands nearest to them.

    Examples:
        >>> [round(f, 2) for f in octave_bands(3, 800, 1250)[0]]
        [794.33, 1000.0, 1258.93]
    """
    f_min, f_max = check_range(f_min, f_max)
    shift = 0.0 if whole_number("fraction", fraction, 1) % 2 else 0.5
    first, last = (round(fraction * math.log(f / REFERENCE_HZ, OCTAVE) - shift) for f in (f_min, f_max))
    midbands = [REFERENCE_HZ * OCTAVE ** ((x + shift) / fraction) for x in range(first, last + 1)]
    half = OCTAVE ** (0.5 / fraction)
    return midbands, [(f / half, f * half) for f in midbands]


def check_range(f_min: float, f_max: float) -> tuple[float, float]:
    """Return a range of frequencies, or raise unless it ascends from above 0 Hz."""
    f_min, f_max = finite_number("f_min", f_min, "Hz"), finite_number("f_max", f_max, "Hz")
    if not 0 < f_min < f_max:
        raise ArgumentError(f"f_max must lie above f_min > 0, got {number_text(f_min)} and {number_text(f_max)} Hz")
    return f_min, f_max


def equivalent_rectangular_bandwidth(centre: float) -> float:
    """Return the bandwidth (Hz) of the auditory filter at a frequency (Hz); Glasberg and Moore, 1990.

    Examples:
        >>> round(equivalent_rectangular_bandwidth(1000), 2)
        132.64
    """
    return 24.7 * (4.37 * centre / 1000 + 1)


def gammatone(centre: float, fs: float) -> Tensor:
    """Design a gammatone filter of fourth order as four sections; its gain at the centre is 1.

    The impulse response is t^3 e^(-2 pi b t) cos(2 pi centre t) with b = 1.019 equivalent rectangular bandwidths, made
    discrete by impulse invariance.

    Source: M. Slaney, An efficient implementation of the Patterson-Holdsworth auditory filter bank, Apple technical
    report 35, 1993.

    Args:
        centre: Hz, in (0, fs/2).
        fs: sample rate, Hz.

    Returns:
        float64, (4, 6), with the magnitude of `scipy.signal.gammatone(centre, "iir", fs=fs)`.
    """
    rate = checked_rate(fs)
    w = settled(2 * math.pi * FREQUENCY.check(centre, rate) / rate)
    decay = math.exp(-2 * math.pi * 1.019 * equivalent_rectangular_bandwidth(centre) / rate)
    a1, a2 = -2 * decay * math.cos(w), decay * decay
    offsets = [sign * math.sqrt(3 + other * 2**1.5) for other in (1, -1) for sign in (1, -1)]
    zeros = [-decay * (math.cos(w) + offset * math.sin(w)) for offset in offsets]
    v = complex(math.cos(w), -math.sin(w))
    rows = []
    for zero in zeros:
        gain = abs((1 + a1 * v + a2 * v * v) / (1 + zero * v))
        rows.append([gain, gain * zero, 0.0, 1.0, a1, a2])
    return torch.tensor(rows, dtype=torch.float64, device="cpu")
