"""Banks of band-pass filters: equally spaced on a frequency scale, in fractional octaves, and gammatone filters."""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import Tensor

from torchfx.checks import number_text
from torchfx.design import butterworth
from torchfx.design.bands import OCTAVE, SCALES, Scale, check_range, gammatone, octave_bands, spaced
from torchfx.errors import ArgumentError
from torchfx.filter.bank import Bank
from torchfx.parameters import choice, count, frequency, sample_rate

__all__ = ["BandpassBank", "ERBFilterBank", "GammatoneBank", "LogFilterBank", "MelFilterBank", "OctaveBank"]

MOST_BANDS = 4096
"""Each is designed, and makes a signal: far more are a mistake that would fill the memory."""


def _bandpasses(edges: list[tuple[float, float]], order: int, rate: Any) -> Tensor:
    """Return Butterworth band-passes, (bands, order, 6)."""
    _check_highest(edges[-1][1], rate)
    return torch.stack([butterworth(pair, order, rate, "bandpass") for pair in edges])


def _check_highest(edge: float, rate: float) -> None:
    if edge >= rate / 2:
        raise ArgumentError(
            f"f_max must leave the highest band below fs/2 = {number_text(rate / 2)} Hz, got an edge at {edge:.6g} Hz; "
            f"pass a lower one, or fs and no f_max"
        )


def _with_room(usual: float, rate: float | None) -> float:
    """Return the usual upper end (Hz) of a bank, or 0.45 of a rate too low for it."""
    return usual if rate is None or usual < rate / 2 else 0.45 * rate


class BandpassBank(Bank):
    """Parallel Butterworth band-passes, equally spaced on a frequency scale: (..., time) becomes (..., bands, time).

    The bands meet at their -3 dB edges. `LogFilterBank`, `MelFilterBank` and `ERBFilterBank` fix the scale.

    Examples:
        >>> import torch
        >>> bank = BandpassBank(num_bands=6, f_min=125, f_max=8000, scale="log", fs=48_000)
        >>> bank(torch.randn(2, 1000)).shape
        torch.Size([2, 6, 1000])
        >>> [round(edge) for edge in bank.edges]
        [125, 250, 500, 1000, 2000, 4000, 8000]
    """

    num_bands: int = count(default=10, high=MOST_BANDS, doc="how many bands", draws=(1, 5))
    f_min: float = frequency(default=20.0, doc="lower edge of the lowest band", learnable=False)
    f_max: float = frequency(
        default=None,
        doc="upper edge of the highest band; None: 20 kHz, or 0.45 fs where fs is too low",
        learnable=False,
    )
    order: int = count(default=3, high=24, doc="slope in units of 6 dB per octave", draws=(1, 3))
    fs: float | None = sample_rate(default=None)
    scale: Scale = choice(SCALES, default="log", doc="on which the bands are equally wide")

    @property
    def bands(self) -> int:
        """The number of bands."""
        return self.num_bands

    @property
    def edges(self) -> list[float]:
        """The band edges in Hz, the outer edges included: bands + 1 values."""
        return spaced(self.f_min, self.f_max, self.num_bands + 1, self.scale)

    def check_parameters(self) -> None:
        """Choose the default `f_max` if it is not given; raise if the range is empty."""
        if self.f_max is None:
            self.f_max = _with_room(20_000.0, self.fs)
            return
        check_range(self.f_min, self.f_max)

    def design(self, rate: Any) -> Tensor:
        """Return the sections at a sample rate (Hz), (bands, order, 6)."""
        edges = self.edges
        return _bandpasses(list(itertools.pairwise(edges)), self.order, rate)


class LogFilterBank(BandpassBank):
    """Band-passes of equal width in octaves.

    Examples:
        >>> LogFilterBank(10, fs=48_000).bands
        10
    """

    scale = "log"


class MelFilterBank(BandpassBank):
    """Band-passes of equal width on the mel scale (HTK's formula).

    Examples:
        >>> MelFilterBank(40, f_max=8000, fs=16_000.5).sos.shape
        torch.Size([40, 3, 6])
    """

    scale = "mel"


class ERBFilterBank(BandpassBank):
    """Band-passes of equal width in equivalent rectangular bandwidths (Glasberg and Moore, 1990).

    Examples:
        >>> ERBFilterBank(32, f_min=50, f_max=8000, fs=48_000).bands
        32
    """

    scale = "erb"


class OctaveBank(Bank):
    """Octave and fractional-octave bands of IEC 61260-1:2014, base 10: (..., time) becomes (..., bands, time).

    Midbands and edges are exact. Butterworth filters of order 4 (the default) meet the class 1 acceptance limits at the
    standard's breakpoints for bands that end at or below 0.46 fs; filters of order 3 do for bands that end at or below
    0.23 fs.

    Examples:
        >>> import torch
        >>> bank = OctaveBank(fraction=1, f_min=125, f_max=8000, fs=48_000)
        >>> [round(f, 1) for f in bank.midbands]
        [125.9, 251.2, 501.2, 1000.0, 1995.3, 3981.1, 7943.3]
        >>> levels = bank(torch.randn(48_000)).square().mean(-1).log10() * 10  # dB in each band
        >>> levels.shape
        torch.Size([7])
    """

    fraction: int = count(
        default=3, high=48, doc="bands in an octave: 1 for octaves, 3 for third octaves", draws=(1, 2)
    )
    f_min: float = frequency(default=25.0, doc="about the lowest midband", learnable=False)
    f_max: float = frequency(
        default=None, doc="about the highest midband; None: 16 kHz, or less where fs is too low", learnable=False
    )
    order: int = count(default=4, high=24, doc="slope in units of 6 dB per octave", draws=(1, 3))
    fs: float | None = sample_rate(default=None)

    @property
    def bands(self) -> int:
        """The number of bands."""
        return len(self.midbands)

    @property
    def midbands(self) -> list[float]:
        """The exact mid-band frequencies, Hz."""
        return octave_bands(self.fraction, self.f_min, self.f_max)[0]

    @property
    def edges(self) -> list[tuple[float, float]]:
        """The lower and upper -3 dB edge of each band, Hz."""
        return octave_bands(self.fraction, self.f_min, self.f_max)[1]

    def check_parameters(self) -> None:
        """Choose the default `f_max` if it is not given; raise if the range is empty or too high."""
        if self.f_max is None:
            usual = 16_000.0
            highest = octave_bands(self.fraction, self.f_min, usual)[1][-1][1]
            fits = _with_room(highest, self.fs) == highest
            self.f_max = usual if fits else _with_room(highest, self.fs) / OCTAVE ** (1 / self.fraction)
            return
        check_range(self.f_min, self.f_max)
        if self.fs is not None:
            _check_highest(self.edges[-1][1], self.fs)

    def design(self, rate: Any) -> Tensor:
        """Return the sections at a sample rate (Hz), (bands, order, 6)."""
        return _bandpasses(self.edges, self.order, rate)


class GammatoneBank(Bank):
    """Auditory filter bank of fourth-order gammatone filters: (..., time) becomes (..., bands, time).

    The centre frequencies are equally spaced on the ERB scale (equivalent rectangular bandwidth); the gain at each
    centre is 1.

    Source: M. Slaney, Apple technical report 35, 1993; bandwidths of Glasberg and Moore, 1990.

    Examples:
        >>> import torch
        >>> bank = GammatoneBank(num_bands=32, f_min=50, f_max=8000, fs=48_000)
        >>> bank(torch.randn(2, 1000)).shape
        torch.Size([2, 32, 1000])
    """

    num_bands: int = count(default=32, low=2, high=MOST_BANDS, doc="how many bands", draws=(2, 5))
    f_min: float = frequency(default=50.0, doc="centre of the lowest band", learnable=False)
    f_max: float = frequency(
        default=None, doc="centre of the highest band; None: 16 kHz, or 0.45 fs where fs is too low", learnable=False
    )
    fs: float | None = sample_rate(default=None)

    @property
    def bands(self) -> int:
        """The number of bands."""
        return self.num_bands

    @property
    def centres(self) -> list[float]:
        """The centre frequencies, Hz."""
        return spaced(self.f_min, self.f_max, self.num_bands, "erb")

    def check_parameters(self) -> None:
        """Choose the default `f_max` if it is not given; raise if the range is empty."""
        if self.f_max is None:
            self.f_max = _with_room(16_000.0, self.fs)
            return
        check_range(self.f_min, self.f_max)

    def design(self, rate: Any) -> Tensor:
        """Return the sections at a sample rate (Hz), (bands, 4, 6)."""
        return torch.stack([gammatone(centre, rate) for centre in self.centres])
