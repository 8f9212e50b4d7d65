"""Filters over the bins of spectra as tensors, cached by their settings."""

from __future__ import annotations

import warnings
from functools import lru_cache

import torch
from torch import Tensor

from torchfx.checks import callers_level, number_text
from torchfx.design.mel import cosine_transform, linear_filters, mel_filters

__all__ = ["cosines", "linear_bands", "mel_bands", "new_mel_bands"]


def mel_bands(
    bins: int, rate: float, n_mels: int, f_min: float, f_max: float | None, norm: str | None, mel_scale: str
) -> Tensor:
    """Return `new_mel_bands`, cached; the warning comes with the first call."""
    return _kept_mel_bands(bins, rate, n_mels, f_min, f_max, norm, mel_scale)


def new_mel_bands(
    bins: int, rate: float, n_mels: int, f_min: float, f_max: float | None, norm: str | None, mel_scale: str
) -> Tensor:
    """Return `design.mel.mel_filters` as a float64 tensor; warn about bands without a bin."""
    found = mel_filters(bins, rate, n_mels, f_min, f_max, norm or "none", mel_scale)
    empty = [str(m) for m in range(n_mels) if not found[m].any()]
    if empty:
        several = len(empty) > 1
        warnings.warn(
            f"mel band{'s' if several else ''} {', '.join(empty)} of {n_mels} {'have' if several else 'has'} no bin "
            f"among {bins} at {number_text(rate)} Hz and will be empty: take a larger n_fft, fewer n_mels, or a higher "
            f"f_min",
            UserWarning,
            stacklevel=callers_level(),
        )
    with torch.inference_mode(False):
        return torch.from_numpy(found)


_kept_mel_bands = lru_cache(maxsize=32)(new_mel_bands)


def linear_bands(bins: int, rate: float, n_filter: int, f_min: float, f_max: float | None) -> Tensor:
    """Return `design.mel.linear_filters` as a tensor, float64."""
    with torch.inference_mode(False):
        return torch.from_numpy(linear_filters(bins, rate, n_filter, f_min, f_max))


def cosines(count: int, size: int, norm: str | None) -> Tensor:
    """Return `design.mel.cosine_transform` as a tensor, float64."""
    with torch.inference_mode(False):
        return torch.from_numpy(cosine_transform(count, size, norm or "none"))


# As `torch.compiler.assume_constant_result` does, which imports the compiler: traced programs ask NumPy beforehand.
mel_bands._dynamo_marked_constant = True  # type: ignore[attr-defined]
new_mel_bands._dynamo_marked_constant = True  # type: ignore[attr-defined]
linear_bands._dynamo_marked_constant = True  # type: ignore[attr-defined]
cosines._dynamo_marked_constant = True  # type: ignore[attr-defined]
