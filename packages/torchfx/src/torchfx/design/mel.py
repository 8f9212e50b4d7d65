"""Mel scales, triangular filters over the bins of a spectrum, and the cosine transform behind cepstra; in NumPy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from torchfx.errors import ArgumentError

__all__ = ["cosine_transform", "hz_to_mel", "linear_filters", "mel_filters", "mel_to_hz"]

Array = npt.NDArray[np.float64]

SLANEY_STEP = 200 / 3
"""Hz for a mel below 1 kHz."""
SLANEY_RATIO = np.log(6.4) / 27
"""Natural logarithm of the ratio between frequencies a mel apart, from 1 kHz on."""


def hz_to_mel(frequency: Array | float, scale: str = "htk") -> Array:
    """Return frequencies (Hz) in mel.

    Args:
        frequency: Hz, >= 0.
        scale: "htk": 2595 log10(1 + f / 700), as in HTK and Kaldi; "slaney": 3 f / 200 below 1 kHz, and
            15 + 27 log(f / 1000) / log(6.4) above, as in M. Slaney's Auditory Toolbox (1998) and librosa.

    Examples:
        >>> hz_to_mel([0.0, 1000.0], "slaney")
        array([ 0., 15.])
    """
    f = np.asarray(frequency, dtype=np.float64)
    if scale == "htk":
        found: Array = 2595.0 * np.log10(1.0 + f / 700.0)
        return found
    return np.where(f < 1000, f / SLANEY_STEP, 15 + np.log(np.maximum(f, 1000.0) / 1000) / SLANEY_RATIO)


def mel_to_hz(mel: Array | float, scale: str = "htk") -> Array:
    """Return the frequencies (Hz) of `hz_to_mel`."""
    m = np.asarray(mel, dtype=np.float64)
    if scale == "htk":
        found: Array = 700.0 * (10.0 ** (m / 2595.0) - 1.0)
        return found
    return np.where(m < 15, m * SLANEY_STEP, 1000 * np.exp((np.maximum(m, 15.0) - 15) * SLANEY_RATIO))


def mel_filters(
    bins: int,
    rate: float,
    n_mels: int,
    f_min: float = 0.0,
    f_max: float | None = None,
    norm: str = "none",
    mel_scale: str = "htk",
) -> Array:
    """Return triangles whose corners are evenly spaced in mel, (n_mels, bins).

    Args:
        bins: of the spectrum, from 0 Hz to rate / 2.
        rate: sample rate, Hz.
        n_mels: how many.
        f_min, f_max: the lowest and the highest corner, Hz; None: rate / 2.
        norm: "slaney" divides each by half its width in Hz, so that all have the same area.
        mel_scale: "htk" or "slaney", with sides straight over Hz; "kaldi": "htk" with sides straight over mel, and
            without the bin at rate / 2.

    Raises:
        ArgumentError: f_min and f_max that don't ascend within 0 and rate / 2.
    """
    top = rate / 2 if f_max is None else f_max
    if not 0 <= f_min < top <= rate / 2:
        raise ArgumentError(f"f_min and f_max must ascend within [0, fs/2] = [0, {rate / 2:g}] Hz, got {f_min}, {top}")
    scale = "slaney" if mel_scale == "slaney" else "htk"
    low, high = hz_to_mel(f_min, scale), hz_to_mel(top, scale)
    corners = np.linspace(low, high, n_mels + 2)
    frequencies = np.linspace(0.0, rate / 2, bins)
    if mel_scale == "kaldi":
        found = _triangles(hz_to_mel(frequencies, scale), corners)
        found[:, -1] = 0
    else:
        corners = mel_to_hz(corners, scale)
        found = _triangles(frequencies, corners)
    if norm == "slaney":
        corners = corners if mel_scale != "kaldi" else mel_to_hz(corners, scale)
        found *= (2 / (corners[2:] - corners[:-2]))[:, None]
    return found


def linear_filters(bins: int, rate: float, n_filter: int, f_min: float = 0.0, f_max: float | None = None) -> Array:
    """Return triangles whose corners are evenly spaced in Hz, (n_filter, bins); see `mel_filters`."""
    top = rate / 2 if f_max is None else f_max
    if not 0 <= f_min < top <= rate / 2:
        raise ArgumentError(f"f_min and f_max must ascend within [0, fs/2] = [0, {rate / 2:g}] Hz, got {f_min}, {top}")
    return _triangles(np.linspace(0.0, rate / 2, bins), np.linspace(f_min, top, n_filter + 2))


def cosine_transform(count: int, size: int, norm: str = "ortho") -> Array:
    """Return the first rows of the discrete cosine transform of type 2, (count, size).

    Row k is 2 cos(pi k (2 n + 1) / (2 size)); with "ortho" the rows have length 1.
    """
    n, k = np.arange(size), np.arange(count)[:, None]
    found: Array = 2 * np.cos(np.pi * k * (2 * n + 1) / (2 * size))
    if norm == "ortho":
        found *= np.sqrt(1 / (2 * size))
        found[0] *= np.sqrt(0.5)
    return found


def _triangles(at: Array, corners: Array) -> Array:
    rise = (at - corners[:-2, None]) / (corners[1:-1] - corners[:-2])[:, None]
    fall = (corners[2:, None] - at) / (corners[2:] - corners[1:-1])[:, None]
    found: Array = np.maximum(0.0, np.minimum(rise, fall))
    return found
