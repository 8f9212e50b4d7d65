"""Weighting curves for sound level and loudness, and the equalisation of records.

They are analogue filters of real poles. A pole far below fs/2 is placed by the bilinear transform. One near or beyond
fs/2 would be bent by it: such a low-pass is instead the one whose magnitude agrees with the analogue one at 0 Hz and at
two frequencies below fs/2 (after M. Vicanek, Matched one-pole digital shelving filters, 2019).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np
from torch import Tensor

from torchfx.checks import number_text
from torchfx.checks import sample_rate as checked_rate
from torchfx.design.biquad import second_order
from torchfx.design.operator import design_operator
from torchfx.errors import SampleRateError
from torchfx.parameters import choice, flag, named

if TYPE_CHECKING:
    from torchfx.design.operator import Coefficients

__all__ = ["CURVES", "Curve", "riaa", "weighting"]

Curve = Literal["A", "B", "C", "K"]
CURVES = ("A", "B", "C", "K")
LEAST_RATE = 8000  # Hz; the curves are defined by their gain at 1 kHz, and K's shelf lies at 1.7 kHz
MATCHED_SHARE, MATCHED_HZ = 0.85, 20_000.0  # of fs/2, Hz; the share with the smallest error at 44.1 and 48 kHz

CURVE, RECORDING = named("curve", choice(CURVES)), named("recording", flag())

Factor = tuple[float, float, float, float]
"""b0 b1 a0 a1."""


def weighting(curve: Curve, fs: float) -> Tensor:
    """Design a frequency weighting for sound level or loudness.

    Args:
        curve: "A" or "C" (IEC 61672-1), "B" (IEC 651, historical), 0 dB at 1 kHz; or "K" (ITU-R BS.1770-5).
        fs: sample rate, Hz, >= 8000.

    Returns:
        float64, (sections, 6). At 48 kHz, K's are the standard's own coefficients.

    Examples:
        >>> weighting("A", 48_000).shape
        torch.Size([3, 6])
    """
    return _weighting(CURVE.check(curve, fs), _rate(fs))


def riaa(fs: float, recording: bool = False) -> Tensor:
    """Design the equalisation of long-playing records (IEC 60098: 3180, 318 and 75 us), 0 dB at 1 kHz.

    Args:
        fs: sample rate, Hz, >= 8000.
        recording: the inverse, as records are cut.

    Returns:
        float64, (1, 6).
    """
    return _riaa(_rate(fs), RECORDING.check(recording, fs))


def _rate(fs: float) -> float:
    rate = checked_rate(fs)
    if rate < LEAST_RATE:
        raise SampleRateError(f"fs must lie in [{LEAST_RATE}, inf) Hz for this curve, got {number_text(rate)}")
    return float(rate)


# IEC 61672-1:2013, annex E, defines the corners of A and C by these numbers. B's additional one is that of IEC 651.
REFERENCE, LOW, HIGH, A_WEIGHTING = 1000.0, 10**1.5, 10**3.9, 10**2.45
LINEAR = -(REFERENCE**2 + (LOW * HIGH / REFERENCE) ** 2 - math.sqrt(0.5) * (LOW**2 + HIGH**2)) / (1 - math.sqrt(0.5))
SPREAD = math.sqrt(LINEAR**2 - 4 * (LOW * HIGH) ** 2)
F1, F4 = math.sqrt((LINEAR - SPREAD) / 2), math.sqrt((LINEAR + SPREAD) / 2)
F2, F3 = (3 - math.sqrt(5)) / 2 * A_WEIGHTING, (3 + math.sqrt(5)) / 2 * A_WEIGHTING
F5 = 10**2.2

# ITU-R BS.1770-5, tables 1 and 2: b0 b1 b2 a1 a2 at 48 kHz.
K_RATE = 48_000.0
K_SECTIONS = (
    (1.53512485958697, -2.69169618940638, 1.19839281085285, -1.69065929318241, 0.73248077421585),
    (1.0, -2.0, 1.0, -1.99004745483398, 0.99007225036621),
)

RIAA_SECONDS = (3180e-6, 318e-6, 75e-6)


@design_operator("weighting_sos(str curve, float fs) -> Tensor", shape=lambda curve, fs: (2 if curve in "CK" else 3, 6))
def _weighting(curve: Curve, fs: float) -> Coefficients:
    if curve == "K":
        return np.array([_moved(row, fs) for row in K_SECTIONS])
    middle = {"A": (_highpass(F2, fs), _highpass(F3, fs)), "B": (_highpass(F5, fs), (1.0, 0.0, 1.0, 0.0)), "C": ()}
    low, high = _highpass(F1, fs), _matched_lowpass(F4, fs)
    return _normalised([low, low, *middle[curve], high, high], fs)


@design_operator("riaa_sos(float fs, bool recording) -> Tensor", shape=lambda fs, recording: (1, 6))
def _riaa(fs: float, recording: bool) -> Coefficients:
    pole, zero, high = (1 / (2 * math.pi * seconds) for seconds in RIAA_SECONDS)
    shelf = (*_highpass(zero, fs)[2:], *_highpass(pole, fs)[2:])
    found = _normalised([shelf, _matched_lowpass(high, fs)], fs)
    return np.concatenate([found[:, 3:], found[:, :3]], axis=1) / found[:, :1] if recording else found


def _highpass(f: float, fs: float) -> Factor:
    """Return s / (s + 2 pi f), by the bilinear transform."""
    t = math.tan(math.pi * f / fs)
    return 1 / (1 + t), -1 / (1 + t), 1.0, (t - 1) / (1 + t)


def _matched_lowpass(f: float, fs: float) -> Factor:
    """Return 1 / (s + 2 pi f), with a gain of 1 at 0 Hz, matched in magnitude at two frequencies.

    A factor 1 - r/z has the squared magnitude (1 - r)^2 (1 + alpha phi), phi = 1 - cos w and alpha = 2 r / (1 - r)^2:
    squared magnitudes of a ratio of two give equations that are linear in both alphas.
    """
    top = min(MATCHED_SHARE * fs / 2, MATCHED_HZ)
    rows, values = [], []
    for frequency in (top / 2, top):
        target = 1 / (1 + (frequency / f) ** 2)
        rows.append((1.0, -target))
        values.append((target - 1) / (1 - math.cos(2 * math.pi * frequency / fs)))
    zero, pole = ((1 + a - math.sqrt(1 + 2 * a)) / a for a in np.linalg.solve(rows, values).tolist())
    gain = (1 - pole) / (1 - zero)
    return gain, -gain * zero, 1.0, -pole


def _normalised(factors: list[Factor], fs: float) -> Coefficients:
    """Return factors, two by two, as sections whose gain at 1 kHz is 1."""
    z = np.exp(-2j * np.pi * REFERENCE / fs)
    sos = np.array(
        [
            [*np.convolve(one[:2], two[:2]), *np.convolve(one[2:], two[2:])]
            for one, two in zip(factors[::2], factors[1::2], strict=True)
        ]
    )
    powers = np.array([1, z, z * z])
    sos[0, :3] /= abs(np.prod(sos[:, :3] @ powers / (sos[:, 3:] @ powers)))
    return sos


def _moved(row: tuple[float, float, float, float, float], fs: float) -> tuple[float, ...]:
    """Return a section of BS.1770 at another rate: back to the prototype, and from it to the rate."""
    b0, b1, b2, a1, a2 = row
    numerator, denominator = (
        (p0 - p1 + p2, 2 * (p0 - p2), p0 + p1 + p2) for p0, p1, p2 in ((b0, b1, b2), (1.0, a1, a2))
    )
    t = math.sqrt(denominator[2] / denominator[0])  # the poles' frequency becomes 1 rad/s
    (b2, b1, b0), (a2, a1, a0) = ((p2 * t * t, p1 * t, p0) for p2, p1, p0 in (numerator, denominator))
    found = second_order((b2, b1, b0), (a2, a1, a0), K_RATE / math.pi * math.atan(t), fs)
    return tuple(map(float, found))
