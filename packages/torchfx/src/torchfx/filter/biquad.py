"""The biquads of the Audio EQ Cookbook: low-pass, high-pass, band-pass, notch, all-pass, peaking and shelving filters.

Cutoff, q and gain are numbers, tensors (one value per example) or `nn.Parameter`s (learned).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from torch import Tensor

from torchfx.design.biquad import BIQUADS, BiquadType, band_count, biquad, parametric_eq
from torchfx.filter.recursive import RecursiveFilter
from torchfx.parameters import (
    BUTTERWORTH_Q,
    Value,
    choice,
    frequency,
    gain_decibels,
    per_band,
    quality,
    sample_rate,
    shelf_slope,
)

__all__ = [
    "AllPass", "BiquadBPF", "BiquadBPFPeak", "BiquadHPF", "BiquadLPF", "HiShelving", "LoShelving", "Notch",
    "ParametricEQ", "Peaking",
]  # fmt: skip


class Resonant(RecursiveFilter):
    """Base class of biquads without a gain parameter."""

    cutoff: Value = frequency(doc="corner or centre frequency")
    q: Value = quality(default=BUTTERWORTH_Q)
    fs: float | None = sample_rate(default=None)

    btype: ClassVar[BiquadType]

    def design(self, rate: Any) -> Tensor:
        """Return the section at a sample rate (Hz)."""
        return biquad(self.cutoff, self.q, 0.0, rate, self.btype)


class BiquadLPF(Resonant):
    """Second-order low-pass; its gain at the cutoff is q.

    Examples:
        >>> import torch
        >>> settled = BiquadLPF(1000, q=2.0, fs=48_000)(torch.ones(1, 48_000))
        >>> round(float(settled[0, -1]), 6)  # 0 Hz passes unchanged
        1.0
    """

    btype = "lowpass"


class BiquadHPF(Resonant):
    """Second-order high-pass; its gain at the cutoff is q.

    Examples:
        >>> BiquadHPF(80, fs=48_000).sos.shape
        torch.Size([1, 6])
    """

    btype = "highpass"


class BiquadBPF(Resonant):
    """Band-pass with a gain of 1 (0 dB) at the centre for any q. The -3 dB bandwidth is about cutoff / q.

    The cookbook calls it "BPF (constant 0 dB peak gain)", torchaudio `bandpass_biquad`.

    Examples:
        >>> import math, torch
        >>> tone = torch.sin(2 * math.pi * 1000 / 48_000 * torch.arange(48_000, dtype=torch.float64))
        >>> round(float(BiquadBPF(1000, q=4.0, fs=48_000)(tone)[24_000:].abs().max()), 6)
        1.0
    """

    btype = "bandpass"


class BiquadBPFPeak(Resonant):
    """Band-pass with a resonant peak: the gain at the centre is q, and far from the centre it does not depend on q.

    The cookbook calls it "BPF (constant skirt gain, peak gain = Q)", torchaudio `bandpass_biquad` with
    `const_skirt_gain`.

    Examples:
        >>> import math, torch
        >>> tone = torch.sin(2 * math.pi * 1000 / 48_000 * torch.arange(48_000, dtype=torch.float64))
        >>> round(float(BiquadBPFPeak(1000, q=4.0, fs=48_000)(tone)[24_000:].abs().max()), 6)
        4.0
    """

    btype = "bandpass_skirt"


class Notch(Resonant):
    """Remove one frequency; the -3 dB bandwidth is about cutoff / q. `BiquadNotch` is an alias.

    Examples:
        >>> import math, torch
        >>> hum = torch.sin(2 * math.pi * 50 / 8000 * torch.arange(16_000))
        >>> bool(Notch(50, q=5, fs=8000)(hum)[8000:].abs().max() < 1e-4)
        True
    """

    btype = "notch"


class AllPass(Resonant):
    """Shift the phase, by 180 degrees at the cutoff, with a gain of 1 everywhere. `BiquadAllPass` is an alias.

    Examples:
        >>> import torch
        >>> impulse = torch.zeros(48_000)
        >>> impulse[0] = 1
        >>> round(float(AllPass(1000, fs=48_000)(impulse).square().sum()), 6)  # the energy stays
        1.0
    """

    btype = "allpass"


BiquadNotch = Notch
BiquadAllPass = AllPass


class Peaking(RecursiveFilter):
    """Boost or cut around one frequency: one band of a parametric equaliser.

    The gain is `gain_db` at the cutoff, and 0 dB at 0 Hz and fs/2.

    Examples:
        >>> import math, torch
        >>> tone = torch.sin(2 * math.pi * 1000 / 48_000 * torch.arange(48_000, dtype=torch.float64))
        >>> raised = Peaking(1000, q=2.0, gain_db=6.0, fs=48_000)(tone)
        >>> round(20 * math.log10(raised[24_000:].abs().max() / tone[24_000:].abs().max()), 2)
        6.0
    """

    cutoff: Value = frequency(doc="centre frequency")
    q: Value = quality(default=BUTTERWORTH_Q)
    gain_db: Value = gain_decibels(default=0.0, doc="gain at the centre", typical="6")
    fs: float | None = sample_rate(default=None)

    def design(self, rate: Any) -> Tensor:
        """Return the section at a sample rate (Hz)."""
        return biquad(self.cutoff, self.q, self.gain_db, rate, "peaking")


class Shelving(RecursiveFilter):
    """Base class of shelving filters."""

    cutoff: Value = frequency(doc="the midpoint, where half of the gain in dB is reached")
    q: Value = quality(default=BUTTERWORTH_Q)
    gain_db: Value = gain_decibels(default=0.0, doc="gain of the shelf", typical="6")
    slope: Value | None = shelf_slope(default=None)
    fs: float | None = sample_rate(default=None)

    btype: ClassVar[BiquadType]

    def unused(self) -> tuple[str, ...]:
        """Return `q` if `slope` replaces it."""
        return () if self.slope is None else ("q",)

    def design(self, rate: Any) -> Tensor:
        """Return the section at a sample rate (Hz)."""
        return biquad(self.cutoff, self.q, self.gain_db, rate, self.btype, self.slope)


class LoShelving(Shelving):
    """Low shelf: boost or cut below a frequency. The gain is `gain_db` at 0 Hz and 0 dB at fs/2.

    Examples:
        >>> import torch
        >>> bass = LoShelving(100, gain_db=6.0, slope=1.0, fs=48_000)
        >>> bass
        LoShelving(cutoff=100, gain_db=6, slope=1, fs=48000)
        >>> round(20 * float(bass(torch.ones(48_000))[-1].log10()), 3)
        6.0
    """

    btype = "lowshelf"


class HiShelving(Shelving):
    """High shelf: boost or cut above a frequency. The gain is `gain_db` at fs/2 and 0 dB at 0 Hz.

    Examples:
        >>> import torch
        >>> treble = HiShelving(8000, gain_db=-6.0, fs=48_000)
        >>> round(float(treble(torch.ones(48_000))[-1]), 6)
        1.0
    """

    btype = "highshelf"


class ParametricEQ(RecursiveFilter):
    """Parametric equaliser: a cascade of `Peaking`, `LoShelving`, `HiShelving` and other biquads.

    Each parameter is one value for all bands, a list with one value per band, or a tensor (..., bands). For a signal
    (batch, channels, time), a tensor (batch, 1, bands) gives each example its own equaliser; the whole batch is one
    operator call.

    Examples:
        >>> import torch
        >>> ParametricEQ([100, 1000, 8000], 0.7, [3, -2, 1.5], ["lowshelf", "peaking", "highshelf"])
        ParametricEQ(cutoff=[100, 1000, 8000], q=0.7, gain_db=[3, -2, 1.5], btype=['lowshelf', 'peaking', 'highshelf'])
        >>> gains = torch.nn.Parameter(torch.zeros(16, 1, 5))  # learned, for each of 16 stereo examples
        >>> learned = ParametricEQ([60, 250, 1000, 4000, 12_000], q=1.0, gain_db=gains, fs=48_000)
        >>> learned(torch.randn(16, 2, 4800)).shape
        torch.Size([16, 2, 4800])
    """

    cutoff: Value | Sequence[float] = per_band(frequency(doc="centre or midpoint"))
    q: Value | Sequence[float] = per_band(quality(), default=BUTTERWORTH_Q)
    gain_db: Value | Sequence[float] = per_band(gain_decibels(typical="6"), default=0.0)
    btype: BiquadType | Sequence[BiquadType] = per_band(choice(BIQUADS, doc="what a band is"), default="peaking")
    fs: float | None = sample_rate(default=None)

    def check_parameters(self) -> None:
        """Raise if the parameters have different numbers of bands."""
        band_count(cutoff=self.cutoff, q=self.q, gain_db=self.gain_db, btype=self.btype)

    def design(self, rate: Any) -> Tensor:
        """Return the sections at a sample rate (Hz)."""
        return parametric_eq(self.cutoff, self.q, self.gain_db, rate, self.btype)
