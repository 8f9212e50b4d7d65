"""Beamforming of microphone arrays by the spectra's covariances: MVDR (minimum variance, no distortion).

Sources: M. Souden, J. Benesty, S. Affes, On Optimal Frequency-Domain Multichannel Linear Filtering for Noise Reduction,
IEEE Trans. ASLP 18 (2), 2010; J. Capon, High-Resolution Frequency-Wavenumber Spectrum Analysis, Proc. IEEE 57 (8),
1969.
"""

from __future__ import annotations

import torch
from torch import Tensor

from torchfx.errors import ArgumentError, ArgumentTypeError

__all__ = [
    "apply_beamforming",
    "mvdr_weights_rtf",
    "mvdr_weights_souden",
    "psd",
    "rtf_evd",
    "rtf_power",
]


def psd(specgram: Tensor, mask: Tensor | None = None, normalize: bool = True, eps: float = 1e-10) -> Tensor:
    """Return the channels' covariance in each bin, (..., bins, channels, channels).

    Args:
        specgram: complex, (..., channels, bins, frames).
        mask: weight of each bin and frame, (..., bins, frames); None: 1.
        normalize: whether the weights of a bin are divided by their sum.
        eps: added to that sum.

    Raises:
        ArgumentError: a mask of another shape.

    Examples:
        >>> psd(torch.randn(3, 5, 20, dtype=torch.complex64)).shape
        torch.Size([5, 3, 3])
    """
    rows = specgram.transpose(-3, -2)
    if mask is None:
        return rows @ rows.mH
    if mask.shape[:-1] != rows.shape[:-2] or mask.shape[-1] != rows.shape[-1]:
        expected = (*rows.shape[:-2], rows.shape[-1])
        raise ArgumentError(f"mask must have the shape (..., bins, frames), here {expected}, got {tuple(mask.shape)}")
    if normalize:
        mask = mask / (mask.sum(-1, keepdim=True) + eps)
    return (rows * mask[..., None, :]) @ rows.mH


def mvdr_weights_souden(
    psd_s: Tensor,
    psd_n: Tensor,
    reference_channel: int | Tensor,
    diagonal_loading: bool = True,
    diag_eps: float = 1e-7,
    eps: float = 1e-8,
) -> Tensor:
    """Return the weights (..., bins, channels) of least noise in a reference channel, by Souden's formula.

    Args:
        psd_s, psd_n: covariances of speech and of noise, complex, (..., bins, channels, channels).
        reference_channel: a channel's index, or weights (..., channels).
        diagonal_loading: whether part of its trace is added to the noise's diagonal.
        diag_eps: which part.
        eps: added to the divisor.

    Raises:
        ArgumentError, ArgumentTypeError: covariances that are no square matrices, or not complex.
    """
    _check_covariances(psd_s=psd_s, psd_n=psd_n)
    ratio = torch.linalg.solve(_loaded(psd_n, diagonal_loading, diag_eps), psd_s)
    return _column(ratio / (_trace(ratio)[..., None, None] + eps), reference_channel)


def mvdr_weights_rtf(
    rtf: Tensor,
    psd_n: Tensor,
    reference_channel: int | Tensor | None = None,
    diagonal_loading: bool = True,
    diag_eps: float = 1e-7,
    eps: float = 1e-8,
) -> Tensor:
    """Return the weights (..., bins, channels) of least noise by the speech's relative transfer function.

    Args:
        rtf: complex, (..., bins, channels).
        psd_n: covariance of the noise, complex, (..., bins, channels, channels).
        reference_channel: the channel whose speech is kept: an index, or weights (..., channels); None: the scale is
            that of `rtf`.
        diagonal_loading, diag_eps, eps: of `mvdr_weights_souden`.
    """
    _check_covariances(psd_n=psd_n)
    whitened: Tensor = torch.linalg.solve(_loaded(psd_n, diagonal_loading, diag_eps), rtf[..., None])[..., 0]
    weights: Tensor = whitened / ((rtf.conj() * whitened).sum(-1).real[..., None] + eps)
    if reference_channel is None:
        return weights
    kept: Tensor = _element(rtf.conj(), reference_channel)[..., None]
    return weights * kept


def rtf_evd(psd_s: Tensor) -> Tensor:
    """Return the eigenvector of the greatest eigenvalue, (..., bins, channels), of covariances of speech."""
    _check_covariances(psd_s=psd_s)
    vectors: Tensor = torch.linalg.eigh(psd_s)[1]
    return vectors[..., -1]


def rtf_power(
    psd_s: Tensor,
    psd_n: Tensor,
    reference_channel: int | Tensor,
    n_iter: int = 3,
    diagonal_loading: bool = True,
    diag_eps: float = 1e-7,
) -> Tensor:
    """Return the relative transfer function of speech by the power method, (..., bins, channels).

    Args:
        psd_s, psd_n: covariances of speech and of noise, complex, (..., bins, channels, channels).
        reference_channel: a channel's index, or weights (..., channels).
        n_iter: iterations, > 0.
        diagonal_loading, diag_eps: of `mvdr_weights_souden`.

    Raises:
        ArgumentError: no iterations.
    """
    _check_covariances(psd_s=psd_s, psd_n=psd_n)
    if n_iter < 1:
        raise ArgumentError(f"n_iter must be >= 1, got {n_iter}")
    psd_n = _loaded(psd_n, diagonal_loading, diag_eps)
    ratio = torch.linalg.solve(psd_n, psd_s)
    found = _column(ratio, reference_channel)[..., None]
    for _ in range(n_iter - 2):
        found = ratio @ found
    return ((psd_s if n_iter > 1 else psd_n) @ found)[..., 0]


def apply_beamforming(beamform_weights: Tensor, specgram: Tensor) -> Tensor:
    """Return the channels' sum (..., bins, frames) by weights (..., bins, channels), which are conjugated.

    Args:
        beamform_weights: complex, (..., bins, channels).
        specgram: complex, (..., channels, bins, frames).

    Raises:
        ArgumentError: shapes that don't fit.
    """
    if beamform_weights.shape[-2:] != (specgram.shape[-2], specgram.shape[-3]):
        raise ArgumentError(
            f"beamform_weights and specgram must have the shapes (..., bins, channels), (..., channels, bins, frames), "
            f"got {tuple(beamform_weights.shape)}, {tuple(specgram.shape)}"
        )
    return torch.einsum("...fc,...cft->...ft", beamform_weights.conj(), specgram)


def _check_covariances(**given: Tensor) -> None:
    for name, values in given.items():
        if not values.is_complex():
            raise ArgumentTypeError(f"{name} must be complex, got {values.dtype}")
        if values.dim() < 3 or values.shape[-1] != values.shape[-2]:
            raise ArgumentError(
                f"{name} must have the shape (..., bins, channels, channels), got {tuple(values.shape)}"
            )


def _trace(values: Tensor) -> Tensor:
    return values.diagonal(dim1=-2, dim2=-1).sum(-1)


def _loaded(values: Tensor, wanted: bool, part: float) -> Tensor:
    """Return matrices with a part of their trace added to their diagonal."""
    if not wanted:
        return values
    load = _trace(values).real[..., None, None] * part + 1e-8
    return values + load * torch.eye(values.shape[-1], dtype=values.dtype, device=values.device)


def _column(values: Tensor, reference: int | Tensor) -> Tensor:
    """Return a column of matrices, or a sum of them."""
    if isinstance(reference, Tensor):
        return (values * reference.to(values.dtype)[..., None, None, :]).sum(-1)
    return values[..., reference]


def _element(values: Tensor, reference: int | Tensor) -> Tensor:
    if isinstance(reference, Tensor):
        return (values * reference.to(values.dtype)[..., None, :]).sum(-1)
    return values[..., reference]
