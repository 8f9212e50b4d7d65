"""Steady sounds and attacks in a spectrogram, separated by medians along time and along frequency."""

from __future__ import annotations

import torch
from torch import Tensor

from torchfx import _ops
from torchfx.checks import finite_number, number_text, whole_number
from torchfx.errors import ArgumentError, ArgumentTypeError

__all__ = ["hpss"]

KINDS = (torch.float32, torch.float64, torch.complex64, torch.complex128)


def hpss(
    S: Tensor,  # noqa: N803  (librosa's name)
    kernel_size: int = 31,
    power: float = 2.0,
    mask: bool = False,
    margin: float = 1.0,
) -> tuple[Tensor, Tensor]:
    """Split a spectrogram into a harmonic and a percussive part, like `librosa.decompose.hpss`.

    Medians of the magnitudes along time keep steady partials, medians along frequency keep attacks. Where H and P are
    these two, the harmonic part has the share H^power / (H^power + (margin P)^power) of the spectrogram, the percussive
    one P^power / (P^power + (margin H)^power). With a margin of 1 both add up to the spectrogram; with a larger one
    something is left that belongs to neither. Beyond its edges the spectrogram is mirrored, the edge included.

    Args:
        S: magnitudes or powers, not negative, or complex spectra, (..., bins, frames).
        kernel_size: frames, and bins, of which medians are taken; odd.
        power: how sharply the parts are separated, > 0.
        mask: whether the shares are returned instead of the parts.
        margin: by how much one median must exceed the other, >= 1.

    Returns:
        The harmonic and the percussive part, each like S; the shares are real. They are differentiable: the gradient of
        a median goes to the value that was picked.

    Raises:
        ArgumentError: an argument out of range.
        ArgumentTypeError: S is of another type.

    Sources: D. FitzGerald, Harmonic/Percussive Separation Using Median Filtering, DAFx 2010. J. Driedger, M. Müller,
    S. Disch, Extending Harmonic-Percussive Separation of Audio Signals, ISMIR 2014, for the margin.

    Examples:
        >>> S = torch.zeros(64, 64)
        >>> S[20] = S[:, 30] = 1.0
        >>> harmonic, percussive = hpss(S)
        >>> harmonic[20, 5], percussive[20, 5], harmonic[40, 30], percussive[40, 30]
        (tensor(1.), tensor(0.), tensor(0.), tensor(1.))
    """
    if not isinstance(S, Tensor) or S.dtype not in KINDS:
        given = S.dtype if isinstance(S, Tensor) else type(S).__name__
        raise ArgumentTypeError(f"S must be a tensor of float32, float64 or complex numbers, got {given}")
    if S.dim() < 2 or 0 in S.shape[-2:]:
        raise ArgumentError(f"S must have the shape (..., bins >= 1, frames >= 1), got {tuple(S.shape)}")
    kernel_size = whole_number("kernel_size", kernel_size, 1)
    if kernel_size % 2 == 0:
        raise ArgumentError(f"kernel_size must be odd, got {kernel_size}")
    power, margin = finite_number("power", power), finite_number("margin", margin)
    if power <= 0:
        raise ArgumentError(f"power must be > 0, got {number_text(power)}")
    if margin < 1:
        raise ArgumentError(f"margin must be >= 1, got {number_text(margin)}")
    harmonic, percussive = along_both(S.abs() if S.is_complex() else S, kernel_size)
    shares = share(harmonic, percussive, power, margin), share(percussive, harmonic, power, margin)
    return shares if mask else (shares[0] * S, shares[1] * S)


def along_both(magnitudes: Tensor, kernel_size: int) -> tuple[Tensor, Tensor]:
    """Return medians of magnitudes (..., bins, frames) along time and along frequency."""
    return _median(magnitudes, kernel_size), _median(magnitudes.mT, kernel_size).mT.contiguous()


def share(own: Tensor, other: Tensor, power: float, margin: float) -> Tensor:
    """Return own^power / (own^power + (margin other)^power), or what silence has where both are 0 or subnormal."""
    other = margin * other
    largest = torch.maximum(own, other).detach()  # any number would do: it keeps powers from over- and underflow
    heard = largest >= torch.finfo(own.dtype).tiny
    scale = torch.where(heard, largest, 1.0)
    mine, others = (torch.where(heard, _power(each / scale, power), 1.0) for each in (own, other))
    return torch.where(heard, mine / (mine + others), 0.5 if margin == 1 else 0.0)


def _median(x: Tensor, window: int) -> Tensor:
    """Return the medians along the last dimension, which is mirrored at its ends."""
    count, half = x.shape[-1], window // 2
    at = torch.arange(-half, count + half, device=x.device)
    at = at % at.new_full((), 2 * count)  # by a number it would be a condition on what `torch.export` accepts
    found: Tensor = _ops.sliding_median(x.index_select(-1, torch.minimum(at, 2 * count - 1 - at)), window)
    return found


def _power(x: Tensor, power: float) -> Tensor:
    """Return a power; its slope at 0, which may be infinite, is taken for 0."""
    positive = x > 0
    return torch.where(positive, torch.where(positive, x, 1.0) ** power, 0.0)
