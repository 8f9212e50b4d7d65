"""`welch`, `hilbert` and `envelope`: what the Fourier transform says of a signal, with SciPy's names and arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from torchfx.checks import sample_rate as checked_rate
from torchfx.checks import whole_number
from torchfx.errors import ArgumentError
from torchfx.functional.filtering import checked_axis, placed
from torchfx.tensors import check_signal

if TYPE_CHECKING:
    from torchfx.functional.filtering import Coefficients

    Window = str | tuple[Any, ...] | Coefficients

__all__ = ["envelope", "hilbert", "welch"]

CHUNK = 1 << 22  # samples in segments at a time: 32 MiB


def welch(
    x: Tensor,
    fs: float = 1.0,
    window: Window = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: str | bool | Callable[[Tensor], Tensor] = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Tensor, Tensor]:
    """Estimate the power spectral density from overlapping segments, like `scipy.signal.welch`.

    Args:
        x: float32 or float64, time along `axis`.
        fs: sample rate, Hz.
        window: a name or a tuple for `scipy.signal.get_window`, or an array (nperseg,).
        nperseg: samples in a segment; None: 256, or as many as an array `window` has. A named window is at most as long
            as the signal.
        noverlap: samples that neighbours share, fewer than `nperseg`; None: half.
        nfft: samples that are transformed, with zeros after the segment, >= nperseg; None: nperseg.
        detrend: what is subtracted from each segment: its mean ("constant") or its line of regression ("linear");
            False: nothing. Or a function of segments (..., segments, nperseg).
        return_onesided: whether only frequencies >= 0 are returned, with the power of those below added.
        scaling: "density", in the signal's unit squared per Hz, or "spectrum", in that unit squared.
        axis: the time's axis.
        average: "mean" or "median" of the segments' powers; the median is corrected for its bias.

    Returns:
        Frequencies, Hz, float64, (n,); and powers like x, n long along `axis`. Computed in float64.

    Raises:
        ArgumentError: an argument out of range.

    Source: P. D. Welch, The Use of Fast Fourier Transform for the Estimation of Power Spectra, IEEE Trans. Audio and
    Electroacoustics 15 (2), 1967.

    Examples:
        >>> frequencies, powers = welch(torch.randn(2, 48_000), 48_000, nperseg=512)
        >>> powers.shape
        torch.Size([2, 257])
        >>> bool((powers.mean(-1) * 24_000 - 1).abs().max() < 0.05)  # white noise of power 1
        True
    """
    x, fs, axis = check_signal(x), checked_rate(fs), checked_axis(axis, x)
    rows = x.movedim(axis, -1)
    time = rows.shape[-1]
    if isinstance(window, (str, tuple)):
        size = min(time, 256 if nperseg is None else whole_number("nperseg", nperseg, 1))
        taps = torch.from_numpy(_named_window(window, size)).to(x.device)
    else:
        taps = placed("window", window, x)
        size = len(taps) if nperseg is None else whole_number("nperseg", nperseg, 1)
    if taps.dim() != 1 or len(taps) != size or size > time:
        raise ArgumentError(
            f"window must have the shape ({size},) and be at most as long as the signal, {time}, got "
            f"{tuple(taps.shape)}"
        )
    shared = size // 2 if noverlap is None else whole_number("noverlap", noverlap, 0, size - 1)
    n_fft = size if nfft is None else whole_number("nfft", nfft, size)
    _one_of("scaling", scaling, ("density", "spectrum"))
    _one_of("average", average, ("mean", "median"))
    trend = detrend if callable(detrend) else _trend(detrend)
    scale = 1 / (fs * taps.square().sum()) if scaling == "density" else 1 / taps.sum().square()
    segments = rows.unfold(-1, size, size - shared)
    transform = torch.fft.rfft if return_onesided else torch.fft.fft
    count = segments.shape[-2]
    step = max(1, CHUNK // max(1, segments[..., 0, :].numel()))
    parts = []
    for first in range(0, count, step):
        part = trend(segments[..., first : first + step, :].double())
        powers = _transformed(transform, part * taps, n_fft).abs().square()
        parts.append(powers.sum(-2, keepdim=True) if average == "mean" else powers)
    powers = torch.cat(parts, dim=-2)
    powers = (powers.sum(-2) / count if average == "mean" else _unbiased_median(powers)) * scale
    if return_onesided:
        doubled = torch.full(powers.shape[-1:], 2.0, dtype=torch.float64, device=x.device)
        doubled[0] = 1.0
        if n_fft % 2 == 0:
            doubled[-1] = 1.0
        powers = powers * doubled
    frequencies = (torch.fft.rfftfreq if return_onesided else torch.fft.fftfreq)(
        n_fft, 1 / fs, dtype=torch.float64, device=x.device
    )
    found: Tensor = powers.to(x.dtype).movedim(-1, axis)
    return frequencies, found


def hilbert(x: Tensor, N: int | None = None, axis: int = -1) -> Tensor:  # noqa: N803
    """Return the analytic signal, whose imaginary part is x shifted by -90 degrees, like `scipy.signal.hilbert`.

    Args:
        x: float32 or float64, time along `axis`.
        N: how many samples are transformed, with zeros after the signal or its end cut off; None: all.
        axis: the time's axis.

    Returns:
        Complex, like x, N long along `axis`.

    Examples:
        >>> tone = torch.cos(2 * torch.pi * 5 / 100 * torch.arange(100))
        >>> bool((hilbert(tone).abs() - 1).abs().max() < 1e-5)
        True
    """
    x, axis = check_signal(x), checked_axis(axis, x)
    rows = x.movedim(axis, -1)
    n = rows.shape[-1] if N is None else whole_number("N", N, 1)
    spectrum = _transformed(torch.fft.rfft, rows.double(), n)
    factors = torch.full(spectrum.shape[-1:], 2.0, dtype=torch.float64, device=x.device)
    factors[0] = 1.0
    if n % 2 == 0:
        factors[-1] = 1.0
    analytic = _transformed(torch.fft.ifft, pad(spectrum * factors, (0, n - spectrum.shape[-1])), n)
    found: Tensor = analytic.to(torch.complex64 if x.dtype == torch.float32 else torch.complex128).movedim(-1, axis)
    return found


def envelope(
    z: Tensor,
    bp_in: tuple[int | None, int | None] = (1, None),
    *,
    n_out: int | None = None,
    squared: bool = False,
    residual: str | None = "lowpass",
    axis: int = -1,
) -> Tensor:
    """Return the envelope of a band of a signal, and what lies outside of the band, like `scipy.signal.envelope`.

    Args:
        z: float32 or float64, real, time along `axis`, n samples.
        bp_in: the band: the first bin of the discrete Fourier transform that belongs to it and the first after it,
            -n // 2 <= first < last <= (n + 1) // 2; None: the lowest, and the end. Bin k lies at k fs / n.
        n_out: how many samples come back, evenly spaced over the same time; None: n.
        squared: whether the envelope's square is returned.
        residual: what else is returned: what lies below the band ("lowpass"), around it ("all"), or None: nothing.
        axis: the time's axis.

    Returns:
        Like z, with n_out samples; with a residual two of these, (2, ...): envelope and residual.

    Raises:
        ArgumentError: an argument out of range.

    Examples:
        >>> time = torch.arange(1000) / 1000
        >>> swell = 2 + torch.cos(2 * torch.pi * 3 * time)
        >>> found = envelope(swell * torch.sin(2 * torch.pi * 100 * time), residual=None)
        >>> bool((found - swell).abs().max() < 1e-4)
        True
    """
    z, axis = check_signal(z), checked_axis(axis, z)
    rows = z.movedim(axis, -1)
    n = rows.shape[-1]
    count = n if n_out is None else whole_number("n_out", n_out, 1)
    if residual is not None:
        _one_of("residual", residual, ("lowpass", "all"))
    start, stop = (-(n // 2) if bp_in[0] is None else bp_in[0], (n + 1) // 2 if bp_in[1] is None else bp_in[1])
    if not -n // 2 <= start < stop <= (n + 1) // 2:
        raise ArgumentError(
            f"bp_in must be first < last, both within [{-n // 2}, {(n + 1) // 2}], for {n} samples, got {bp_in}"
        )
    half = _transformed(torch.fft.rfft, rows.double(), n)
    spectrum = pad(half, (0, n - half.shape[-1]))
    factors = torch.ones(n, dtype=torch.float64, device=z.device)
    if start > 0:
        factors[start:stop] = 2.0
    elif stop > 0:
        factors[1:stop] = 2.0
    band = (spectrum * factors)[..., torch.arange(start, stop, device=z.device) % n]
    around_zero = _transformed(torch.fft.ifft, band, count) * (count / n)
    found: Tensor = around_zero.real.square() + around_zero.imag.square() if squared else around_zero.abs()
    found = found.to(z.dtype).movedim(-1, axis)
    if residual is None:
        return found
    kept = torch.ones(n, dtype=torch.float64, device=z.device)
    if start <= 0 < stop:
        kept[:stop], kept[start:] = 0.0, 0.0
    else:
        kept[start:stop] = 0.0
    if residual == "lowpass" and stop > 0:
        kept[stop : (n + 1) // 2] = 0.0
    elif residual == "lowpass":
        kept[start:], kept[: (n + 1) // 2] = 0.0, 0.0
    shorter = min(n, count)
    if count != n and shorter % 2 == 0:  # the bin at half the lower rate has no partner
        kept[shorter // 2] *= 2.0 if count < n else 0.5
    rest = _transformed(torch.fft.irfft, spectrum * kept, count) * (count / n)
    return torch.stack([found, rest.to(z.dtype).movedim(-1, axis)])


@lru_cache(maxsize=16)
def _named_window(window: str | tuple[Any, ...], size: int) -> Any:
    from scipy import signal

    return signal.get_window(window, size)


def _transformed(transform: Callable[[Tensor, int], Tensor], x: Tensor, n: int) -> Tensor:
    """Return transforms of x, (..., m), over n samples; MKL has no transform of a batch without examples."""
    if x.numel():
        return transform(x, n)
    return transform(x.new_zeros(x.shape[-1]), n).expand(*x.shape[:-1], -1)


def _trend(name: str | bool) -> Callable[[Tensor], Tensor]:
    """Return what subtracts a trend from segments (..., n)."""
    if name is False:
        return lambda segments: segments
    if name == "constant":
        return lambda segments: segments - segments.mean(-1, keepdim=True)
    if name == "linear":
        return _without_line
    raise ArgumentError(f'detrend must be "constant", "linear", False or a function, got {name!r}')


def _without_line(segments: Tensor) -> Tensor:
    time = torch.arange(segments.shape[-1], dtype=segments.dtype, device=segments.device)
    time = time - time.mean()
    level = segments - segments.mean(-1, keepdim=True)
    return level - (level * time).sum(-1, keepdim=True) / time.square().sum().clamp(min=1.0) * time


def _unbiased_median(powers: Tensor) -> Tensor:
    """Return the median of powers (..., segments, n) over segments, divided by what it is for noise of power 1."""
    count = powers.shape[-2]
    ordered = powers.sort(-2).values
    middle: Tensor = (ordered[..., (count - 1) // 2, :] + ordered[..., count // 2, :]) / 2
    return middle / (1 + sum(1 / (2 * i + 1) - 1 / (2 * i) for i in range(1, (count - 1) // 2 + 1)))


def _one_of(name: str, value: str, options: tuple[str, ...]) -> None:
    if value not in options:
        raise ArgumentError(f"{name} must be one of {', '.join(options)}, got {value!r}")
