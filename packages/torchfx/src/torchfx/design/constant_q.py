"""Bands that are evenly spaced in the logarithm of frequency, as weights of a spectrum's bins; in NumPy.

Sources: G. A. Velasco, N. Holighaus, M. Dörfler, T. Grill, Constructing an Invertible Constant-Q Transform with
Nonstationary Gabor Frames, DAFx 2011; C. Schörkhuber, A. Klapuri, N. Holighaus, M. Dörfler, A Matlab Toolbox for
Efficient Perfect Reconstruction Time-Frequency Transforms with Log-Frequency Resolution, AES 53rd Conference, 2014.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["COSINES", "LogBands", "bandwidth_ratio", "erb_offset"]

Array = npt.NDArray[np.float64]

COSINES = {
    "hann": (0.5, 0.5),
    "blackman": (0.42, 0.5, 0.08),
    "blackmanharris": (0.35875, 0.48829, 0.14128, 0.01168),
}
"""Windows as sums of cosines: the amplitude of cos(2 pi i u) for u in (-1/2, 1/2), 1 at u = 0."""
LEAST_WEIGHT = 1e-12
"""A weight below it comes from rounding at a band's edge."""


def bandwidth_ratio(bins_per_octave: int) -> float:
    """Return a constant-Q band's width over its centre, 2^(1/b) - 2^(-1/b): from one neighbour's centre to the other's.

    Examples:
        >>> round(1 / bandwidth_ratio(12), 2)  # Q
        8.65
    """
    return float(2 ** (1 / bins_per_octave) - 2 ** (-1 / bins_per_octave))


def erb_offset(bins_per_octave: int) -> float:
    """Return the gamma (Hz) that makes all bandwidths the same multiple of the ear's, 24.7 + 0.108 f Hz.

    Source: B. R. Glasberg, B. C. J. Moore, Derivation of auditory filter shapes from notched-noise data, Hearing
    Research 47, 1990.
    """
    return bandwidth_ratio(bins_per_octave) * 24.7 / 0.108


@dataclass(frozen=True)
class LogBands:
    """Bands with centres fmin 2^(k / b) and widths alpha fmin 2^(k / b) + gamma, alpha = 2^(1/b) - 2^(-1/b).

    Attributes:
        fmin: lowest centre, Hz.
        n_bins: how many.
        bins_per_octave: b.
        gamma: Hz that are added to each width.
        window: a name in `COSINES`: the bands' shape over frequency.
    """

    fmin: float
    n_bins: int
    bins_per_octave: int
    gamma: float
    window: str

    @property
    def centres(self) -> Array:
        """Centre frequencies (n_bins,), Hz."""
        return self.fmin * np.exp2(np.arange(self.n_bins) / self.bins_per_octave)

    @property
    def widths(self) -> Array:
        """Widths (n_bins,), Hz: a band is 0 half its width away from its centre."""
        return bandwidth_ratio(self.bins_per_octave) * self.centres + self.gamma

    def residual_rows(self, rate: float, hop: int) -> tuple[int, int]:
        """Return how many rows hold what lies below the bands, and how many what lies above.

        None is wider than rate / hop, so that its samples, `hop` apart, show all of it; the bands are no wider either.
        """
        return self._rows(self.centres[0], self.widths[0], rate, hop), self._rows(
            rate / 2 - self.centres[-1], self.widths[-1], rate, hop
        )

    @staticmethod
    def _rows(span: float, width: float, rate: float, hop: int) -> int:
        return max(0, math.ceil(span / (rate / hop - min(width / 2, span)))) if span > 0 else 0

    def weights(self, rate: float, samples: int, hop: int, residual: bool) -> list[tuple[int, Array]]:
        """Return each row's first bin in the spectrum of real samples, and its weights from there on.

        Args:
            rate: Hz.
            samples: samples that are transformed; bin j lies at j rate / samples.
            hop: samples between frames, which decides how many residual rows there are.
            residual: whether the residual rows follow, those below the bands first, away from the bands.
        """
        frequencies: Array = np.arange(samples // 2 + 1) * np.float64(rate / samples)
        rows = []
        for centre, width in zip(self.centres, self.widths, strict=True):
            first, end = np.searchsorted(frequencies, (centre - width / 2, centre + width / 2))
            u = (frequencies[first:end] - centre) / width
            rows.append((first, sum(a * np.cos(2 * np.pi * i * u) for i, a in enumerate(COSINES[self.window]))))
        if residual:
            below, above = self.residual_rows(rate, hop)
            low, top = self.centres[[0, -1]]
            rows += self._residual(frequencies, low, -low, self.widths[0], below)
            rows += self._residual(frequencies, top, rate / 2 - top, self.widths[-1], above)
        found = []
        for first, row in rows:
            kept = np.flatnonzero(row > LEAST_WEIGHT)
            first, row = (first + kept[0], row[kept[0] : kept[-1] + 1]) if kept.size else (0, row[:0])
            found.append((int(first), row))
        return found

    @staticmethod
    def _residual(frequencies: Array, centre: float, span: float, width: float, count: int) -> list[tuple[int, Array]]:
        """Return rows from an outer band's centre to `span` Hz away from it, with flanks of half its width."""
        flank, step, rows = min(width / 2, abs(span)), abs(span) / max(count, 1), []
        for i in range(count):
            near, far = i * step, (i + 1) * step + flank if i < count - 1 else np.inf
            ends = sorted((centre + math.copysign(near, span), centre + math.copysign(far, span)))
            first, end = np.searchsorted(frequencies, ends)
            away = np.abs(frequencies[first:end] - centre)
            rise = (1 - np.cos(np.pi * np.clip((away - near) / flank, 0, 1))) / 2
            fall = (1 + np.cos(np.pi * np.clip((away - near - step) / flank, 0, 1))) / 2
            rows.append((int(first), rise * fall if i < count - 1 else rise))
        return rows
