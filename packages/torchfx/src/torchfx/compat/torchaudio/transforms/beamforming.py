"""Beamforming of microphone arrays."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from torchfx.compat.torchaudio import functional as F  # noqa: N812
from torchfx.errors import ArgumentError

__all__ = ["MVDR", "PSD", "RTFMVDR", "SoudenMVDR"]


class PSD(nn.Module):
    """The channels' covariance in each bin; see `functional.psd`.

    Args:
        multi_mask: whether masks are (..., channels, bins, frames), of which the mean is taken.
        normalize, eps: of `functional.psd`.
    """

    def __init__(self, multi_mask: bool = False, normalize: bool = True, eps: float = 1e-15) -> None:
        """Keep the settings."""
        super().__init__()
        self.multi_mask, self.normalize, self.eps = multi_mask, normalize, eps

    def forward(self, specgram: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the covariances (..., bins, channels, channels) of complex spectra (..., channels, bins, frames)."""
        if mask is not None and self.multi_mask:
            mask = mask.mean(-3)
        return F.psd(specgram, mask, self.normalize, self.eps)


class MVDR(nn.Module):
    """Beamforming by masks of speech and noise, (..., bins, frames).

    Args:
        ref_channel: the channel whose speech is kept.
        solution: "ref_channel" (Souden's formula), "stv_evd" or "stv_power" (steering vector by eigenvectors, or by
            the power method).
        multi_mask: whether masks are (..., channels, bins, frames), of which the mean is taken.
        diag_loading, diag_eps: of `functional.mvdr_weights_souden`.
        online: whether covariances are the mean over all calls.
    """

    psd_s: Tensor
    psd_n: Tensor
    mask_sum_s: Tensor
    mask_sum_n: Tensor

    def __init__(
        self,
        ref_channel: int = 0,
        solution: str = "ref_channel",
        multi_mask: bool = False,
        diag_loading: bool = True,
        diag_eps: float = 1e-7,
        online: bool = False,
    ) -> None:
        """Check the solution."""
        super().__init__()
        if solution not in {"ref_channel", "stv_evd", "stv_power"}:
            raise ArgumentError(f'solution must be one of "ref_channel", "stv_evd", "stv_power", got {solution!r}')
        self.ref_channel, self.solution, self.multi_mask = ref_channel, solution, multi_mask
        self.diag_loading, self.diag_eps, self.online = diag_loading, diag_eps, online
        self.psd = PSD(multi_mask)
        for name in ("psd_s", "psd_n", "mask_sum_s", "mask_sum_n"):
            self.register_buffer(name, torch.zeros(1))

    def forward(self, specgram: Tensor, mask_s: Tensor, mask_n: Tensor | None = None) -> Tensor:
        """Return the sum of complex spectra (..., channels, bins, frames); without a mask of noise it is 1 - mask_s."""
        if specgram.dim() < 3 or not specgram.is_complex():
            raise ArgumentError(
                f"specgram must be complex, (..., channels, bins, frames), got {specgram.dtype} {tuple(specgram.shape)}"
            )
        given, specgram = specgram.dtype, specgram.to(torch.complex128)
        mask_n = 1 - mask_s if mask_n is None else mask_n
        speech, noise = self._covariance(specgram, mask_s, "s"), self._covariance(specgram, mask_n, "n")
        loading = self.diag_loading, self.diag_eps
        if self.solution == "ref_channel":
            weights = F.mvdr_weights_souden(speech, noise, self.ref_channel, *loading)
        else:
            rtf = F.rtf_evd(speech) if self.solution == "stv_evd" else F.rtf_power(speech, noise, self.ref_channel)
            weights = F.mvdr_weights_rtf(rtf, noise, self.ref_channel, *loading)
        return F.apply_beamforming(weights, specgram).to(given)

    def _covariance(self, specgram: Tensor, mask: Tensor, of: str) -> Tensor:
        found: Tensor = self.psd(specgram, mask)
        if not self.online:
            return found
        mean, total = getattr(self, f"psd_{of}"), getattr(self, f"mask_sum_{of}")
        weight = (mask.mean(-3) if self.multi_mask else mask).sum(-1)
        if mean.dim() > 1:
            both = total + weight
            found = mean * (total / both)[..., None, None] + found * (weight / both)[..., None, None]
            weight = both
        setattr(self, f"psd_{of}", found)
        setattr(self, f"mask_sum_{of}", weight)
        return found


class SoudenMVDR(nn.Module):
    """Beamforming by covariances of speech and noise; see `functional.mvdr_weights_souden`."""

    def forward(
        self,
        specgram: Tensor,
        psd_s: Tensor,
        psd_n: Tensor,
        reference_channel: int | Tensor,
        diagonal_loading: bool = True,
        diag_eps: float = 1e-7,
        eps: float = 1e-8,
    ) -> Tensor:
        """Return the sum (..., bins, frames) of complex spectra (..., channels, bins, frames)."""
        weights = F.mvdr_weights_souden(psd_s, psd_n, reference_channel, diagonal_loading, diag_eps, eps)
        return F.apply_beamforming(weights, specgram)


class RTFMVDR(nn.Module):
    """Beamforming by the speech's relative transfer function; see `functional.mvdr_weights_rtf`."""

    def forward(
        self,
        specgram: Tensor,
        rtf: Tensor,
        psd_n: Tensor,
        reference_channel: int | Tensor,
        diagonal_loading: bool = True,
        diag_eps: float = 1e-7,
        eps: float = 1e-8,
    ) -> Tensor:
        """Return the sum (..., bins, frames) of complex spectra (..., channels, bins, frames)."""
        weights = F.mvdr_weights_rtf(rtf, psd_n, reference_channel, diagonal_loading, diag_eps, eps)
        return F.apply_beamforming(weights, specgram)
