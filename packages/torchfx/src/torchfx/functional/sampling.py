"""`decimate` and `medfilt`, with SciPy's names and arguments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from torchfx import _ops
from torchfx.checks import whole_number
from torchfx.errors import ArgumentError
from torchfx.functional.filtering import checked_axis, lfilter, sosfilt
from torchfx.functional.zero_phase import filtfilt, sosfiltfilt
from torchfx.rate import resampled_length
from torchfx.tensors import check_signal, settings_on

__all__ = ["decimate", "medfilt"]

CHUNK = 1 << 22  # samples in windows at a time


def decimate(
    x: Tensor, q: int, n: int | None = None, ftype: Any = "iir", axis: int = -1, zero_phase: bool = True
) -> Tensor:
    """Keep every `q`-th sample after a low-pass, like `scipy.signal.decimate`.

    `torchfx.filter.Resample` has a sharper low-pass and any ratio of rates.

    Args:
        x: float32 or float64, time along `axis`. With "iir" and `zero_phase` it must be longer than the extension at
            its ends, 27 samples for n = 8.
        q: how many times fewer samples; at least 2 for "fir".
        n: order of the filter; None: 8 for "iir", 20 q for "fir".
        ftype: "iir", a Chebyshev filter of type I with 0.05 dB ripple up to 0.8 of the new half rate; "fir", a
            windowed sinc (Hamming); or a `scipy.signal.dlti`.
        axis: the time's axis.
        zero_phase: whether an IIR filter runs forwards and backwards, and an FIR filter is centred.

    Returns:
        Like x, ceil(time / q) long along `axis`.

    Raises:
        ArgumentError: an argument out of range.

    Examples:
        >>> decimate(torch.randn(2, 1000), 4).shape
        torch.Size([2, 250])
    """
    x, axis, q = check_signal(x), checked_axis(axis, x), whole_number("q", q, 1)
    order = None if n is None else whole_number("n", n, 1)
    if q == 1 and ftype == "fir":
        raise ArgumentError("q must be a whole number >= 2 for an FIR filter, got 1")
    kind, system = _low_pass(ftype, q, order)
    rows = x.movedim(axis, -1)
    if kind == "fir":
        taps = settings_on(system, x.device)[None]
        origin = (taps.shape[-1] - 1) // 2 if zero_phase else 0
        y = _ops.resample_forward(rows, taps, q, origin, resampled_length(rows.shape[-1], 1, q))
    elif kind == "sos":
        y = (sosfiltfilt if zero_phase else sosfilt)(system, rows)[..., ::q]
    else:
        b, a = system
        y = (filtfilt if zero_phase else lfilter)(b, a, rows)[..., ::q]
    found: Tensor = y.movedim(-1, axis)
    return found


def _low_pass(ftype: Any, q: int, order: int | None) -> tuple[str, Any]:
    """Return which filter it is, "fir", "sos" or "ba", and its coefficients."""
    if isinstance(ftype, str):
        if ftype not in ("iir", "fir"):
            raise ArgumentError(f"ftype must be one of iir, fir, or a scipy.signal.dlti, got {ftype!r}")
        return _designed(ftype, q, (8 if ftype == "iir" else 20 * q) if order is None else order)
    from scipy import signal

    if not isinstance(ftype, signal.dlti):
        raise ArgumentError(f"ftype must be one of iir, fir, or a scipy.signal.dlti, got {ftype!r}")
    zeros_poles = ftype.to_zpk()
    if not len(zeros_poles.poles):
        transfer = ftype.to_tf()
        return "fir", transfer.num / transfer.den
    if any(pole.imag for pole in zeros_poles.poles):  # as SciPy decides, since both extend the signal differently
        transfer = ftype.to_tf()
        return "ba", (transfer.num, transfer.den)
    return "sos", signal.zpk2sos(zeros_poles.zeros, zeros_poles.poles, zeros_poles.gain)


@lru_cache(maxsize=16)
def _designed(ftype: str, q: int, order: int) -> tuple[str, Any]:
    from scipy import signal

    if ftype == "fir":
        return "fir", signal.firwin(order + 1, 1 / q, window="hamming")
    return "sos", signal.cheby1(order, 0.05, 0.8 / q, output="sos")


def medfilt(volume: Tensor, kernel_size: int | Sequence[int] | None = None) -> Tensor:
    """Replace each sample by the median of those around it, like `scipy.signal.medfilt`; zeros lie beyond the edges.

    Args:
        volume: float32 or float64, any shape. As in SciPy all its dimensions are filtered: a batch (examples, channels,
            time) takes a kernel (1, 1, n).
        kernel_size: how many samples around each, odd: one number for every dimension, or one for all; None: 3.

    Returns:
        Like volume. The gradient goes to the samples that were picked.

    Raises:
        ArgumentError: an even kernel, or one of other dimensions.

    Examples:
        >>> medfilt(torch.tensor([1.0, 1.0, 9.0, 1.0, 2.0]), 3)
        tensor([1., 1., 1., 2., 1.])
        >>> medfilt(torch.randn(8, 2, 1000), (1, 1, 5)).shape
        torch.Size([8, 2, 1000])
    """
    volume = check_signal(volume)
    given = 3 if kernel_size is None else kernel_size
    sizes = [given] * volume.dim() if isinstance(given, int) else list(given)
    sizes = [whole_number("kernel_size", size, 1) for size in sizes]
    if len(sizes) != volume.dim() or any(size % 2 == 0 for size in sizes):
        raise ArgumentError(f"kernel_size must be odd, for {volume.dim()} dimensions, got {kernel_size}")
    count = math.prod(sizes)
    if count == 1 or volume.numel() == 0:
        return volume.clone()
    windows = pad(volume, [size // 2 for size in reversed(sizes) for _ in range(2)])
    if count in sizes:  # along one dimension
        found: Tensor = _ops.sliding_median(windows.movedim(sizes.index(count), -1), count)
        return found.movedim(-1, sizes.index(count))
    for dim, size in enumerate(sizes):
        windows = windows.unfold(dim, size, 1)
    # Some rows at a time: the median needs its windows side by side in memory.
    lengths = max(1, CHUNK // (count * max(1, volume[0].numel())))
    parts = [
        part.flatten(volume.dim()).median(-1).values
        for start in range(0, len(volume), lengths)
        for part in [windows[start : start + lengths]]
    ]
    return torch.cat(parts)
