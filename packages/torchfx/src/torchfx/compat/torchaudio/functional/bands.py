"""Filters over bins, levels, slopes, running means and masks of features, with torchaudio's arguments and shapes."""

from __future__ import annotations

import torch
from torch import Tensor

from torchfx.design import mel
from torchfx.errors import ArgumentError
from torchfx.spectral import changes
from torchfx.spectral.filters import new_mel_bands
from torchfx.spectral.levels import limited
from torchfx.spectral.masking import masked

__all__ = [
    "DB_to_amplitude",
    "amplitude_to_DB",
    "compute_deltas",
    "create_dct",
    "linear_fbanks",
    "mask_along_axis",
    "mask_along_axis_iid",
    "melscale_fbanks",
    "sliding_window_cmn",
]


def melscale_fbanks(
    n_freqs: int,
    f_min: float,
    f_max: float,
    n_mels: int,
    sample_rate: int,
    norm: str | None = None,
    mel_scale: str = "htk",
) -> Tensor:
    """Return triangles that are evenly spaced in mel, float32, (n_freqs, n_mels).

    `torchfx.design.mel.mel_filters` has the formulas.

    Args:
        n_freqs: bins, from 0 Hz to sample_rate / 2.
        f_min, f_max: the lowest and the highest corner, Hz.
        n_mels: how many.
        sample_rate: Hz.
        norm: "slaney" divides each by half its width in Hz.
        mel_scale: "htk" or "slaney".

    Raises:
        ArgumentError: corners that don't ascend, another norm or scale.

    Warns:
        UserWarning: bands without a bin.

    Examples:
        >>> melscale_fbanks(201, 0.0, 8000.0, 80, 16_000, "slaney", "slaney").shape
        torch.Size([201, 80])
    """
    if norm not in {None, "slaney"}:
        raise ArgumentError(f'norm must be None or "slaney", got {norm!r}')
    if mel_scale not in {"htk", "slaney"}:
        raise ArgumentError(f'mel_scale must be "htk" or "slaney", got {mel_scale!r}')
    return new_mel_bands(n_freqs, _even(sample_rate), n_mels, f_min, f_max, norm, mel_scale).T.float().contiguous()


def linear_fbanks(n_freqs: int, f_min: float, f_max: float, n_filter: int, sample_rate: int) -> Tensor:
    """Return triangles that are evenly spaced in Hz, float32, (n_freqs, n_filter).

    Args:
        n_freqs: bins, from 0 Hz to sample_rate / 2.
        f_min, f_max: the lowest and the highest corner, Hz.
        n_filter: how many.
        sample_rate: Hz.
    """
    return (
        torch.from_numpy(mel.linear_filters(n_freqs, _even(sample_rate), n_filter, f_min, f_max)).T.float().contiguous()
    )


def _even(sample_rate: int) -> int:
    """Return a sample rate whose half is a whole number: what torchaudio takes for half of an odd one."""
    return sample_rate // 2 * 2


def create_dct(n_mfcc: int, n_mels: int, norm: str | None) -> Tensor:
    """Return the cosine transform of type 2 as a matrix for products from the right, float32, (n_mels, n_mfcc).

    Args:
        n_mfcc: coefficients.
        n_mels: bands.
        norm: "ortho" makes columns of length 1.

    Raises:
        ArgumentError: another norm.
    """
    if norm not in {None, "ortho"}:
        raise ArgumentError(f'norm must be None or "ortho", got {norm!r}')
    return torch.from_numpy(mel.cosine_transform(n_mfcc, n_mels, norm or "none")).T.float().contiguous()


def amplitude_to_DB(  # noqa: N802
    x: Tensor, multiplier: float, amin: float, db_multiplier: float, top_db: float | None = None
) -> Tensor:
    """Return multiplier (log10(max(x, amin)) - db_multiplier).

    Args:
        x: (..., channels, bins, frames), or any shape without top_db.
        multiplier: 10 for powers, 20 for magnitudes.
        amin: what smaller values are taken for.
        db_multiplier: logarithm of the value at 0 dB.
        top_db: how far below an example's loudest value the others lie at most, dB; None: any.

    Examples:
        >>> amplitude_to_DB(torch.tensor([[1.0, 0.01, 0.0]]), 10.0, 1e-10, 0.0, 80.0)
        tensor([[  0., -20., -80.]])
    """
    levels = multiplier * (x.clamp(min=amin).log10() - db_multiplier)
    return limited(levels if levels.dim() > 1 or top_db is None else levels[None], top_db).reshape(x.shape)


def DB_to_amplitude(x: Tensor, ref: float, power: float) -> Tensor:  # noqa: N802
    """Return ref 10^(x power / 10): with power 1 a power, with 0.5 a magnitude."""
    return ref * torch.pow(torch.pow(10.0, 0.1 * x), power)


def compute_deltas(specgram: Tensor, win_length: int = 5, mode: str = "replicate") -> Tensor:
    """Return the slope of each bin over time, (..., bins, frames); see `torchfx.spectral.ComputeDeltas`."""
    return changes.ComputeDeltas(win_length, mode).features(specgram, None)


def sliding_window_cmn(
    specgram: Tensor,
    cmn_window: int = 600,
    min_cmn_window: int = 100,
    center: bool = False,
    norm_vars: bool = False,
) -> Tensor:
    """Return features less their running mean, (..., frames, bins); see `torchfx.spectral.SlidingWindowCmn`."""
    running = changes.SlidingWindowCmn(cmn_window, min_cmn_window, center, norm_vars)
    return running.features(specgram.transpose(-1, -2), None).transpose(-1, -2)


def mask_along_axis(specgram: Tensor, mask_param: int, mask_value: float, axis: int, p: float = 1.0) -> Tensor:
    """Return features with a range of frames or bins replaced, equal for all examples.

    Args:
        specgram: (..., bins, frames).
        mask_param: its length is less than this.
        mask_value: replaces the values there.
        axis: that of bins or of frames.
        p: at most this part of the axis.

    Raises:
        ArgumentError: another axis, a part out of [0, 1].
    """
    return masked(specgram, *_stretch(specgram, mask_param, axis, p), False, mask_value)


def mask_along_axis_iid(
    specgrams: Tensor, mask_param: int, mask_value: float | Tensor, axis: int, p: float = 1.0
) -> Tensor:
    """Return features with a stretch of frames or bins replaced, another of each example and channel.

    The arguments are those of `mask_along_axis`.
    """
    return masked(specgrams, *_stretch(specgrams, mask_param, axis, p), True, mask_value)


def _stretch(specgram: Tensor, mask_param: int, axis: int, p: float) -> tuple[int, int]:
    dim = axis - specgram.dim() if axis >= 0 else axis
    if dim not in {-1, -2}:
        raise ArgumentError(f"axis must be that of bins or frames, {specgram.dim() - 2} or {specgram.dim() - 1}")
    if not 0 <= p <= 1:
        raise ArgumentError(f"p must lie in [0, 1], got {p}")
    return (mask_param if p == 1 else min(mask_param, int(specgram.shape[dim] * p))), dim
