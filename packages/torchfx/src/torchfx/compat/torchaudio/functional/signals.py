"""Companding, pitch, and the distance of two sets of features, with torchaudio's arguments."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import pad as padded

from torchfx.checks import number_text, whole_number
from torchfx.errors import ArgumentError
from torchfx.tensors import check_signal

__all__ = ["detect_pitch_frequency", "frechet_distance", "mu_law_decoding", "mu_law_encoding"]

EPSILON = 1e-9
NEARLY_THE_BEST = 0.99


def mu_law_encoding(x: Tensor, quantization_channels: int) -> Tensor:
    """Return samples in [-1, 1] as whole numbers from 0 to quantization_channels - 1, by the mu law (ITU-T G.711).

    Examples:
        >>> mu_law_encoding(torch.tensor([-1.0, 0.0, 1.0]), 256)
        tensor([  0, 128, 255])
    """
    mu = _mu(quantization_channels)
    x = x if x.is_floating_point() else x.float()
    return ((x.sign() * torch.log1p(mu * x.abs()) / math.log1p(mu) + 1) / 2 * mu + 0.5).long()


def mu_law_decoding(x_mu: Tensor, quantization_channels: int) -> Tensor:
    """Return the samples that `mu_law_encoding` has made whole numbers of."""
    mu = _mu(quantization_channels)
    x = x_mu if x_mu.is_floating_point() else x_mu.float()
    x = x / mu * 2 - 1
    return x.sign() * torch.expm1(x.abs() * math.log1p(mu)) / mu


def _mu(quantization_channels: int) -> float:
    return float(whole_number("quantization_channels", quantization_channels, 2) - 1)


def detect_pitch_frequency(
    waveform: Tensor,
    sample_rate: int,
    frame_time: float = 1e-2,
    win_length: int = 30,
    freq_low: int = 85,
    freq_high: int = 3400,
) -> Tensor:
    """Return the pitch of each frame, Hz, (..., frames), by normalised correlation with what follows.

    Of two lags that fit nearly as well, the shorter one counts. The median over the last frames smooths the result.

    Args:
        waveform: float32 or float64, (..., time).
        sample_rate: Hz.
        frame_time: length of a frame, seconds.
        win_length: frames of the median.
        freq_low, freq_high: Hz.

    Raises:
        ArgumentError: frequencies that don't ascend between 0 and the rate.

    Examples:
        >>> tone = torch.sin(2 * torch.pi * 200 / 16_000 * torch.arange(16_000))
        >>> round(detect_pitch_frequency(tone, 16_000).median().item())
        200
    """
    x = check_signal(waveform)
    if not 0 < freq_low < freq_high <= sample_rate:
        raise ArgumentError(
            f"freq_low and freq_high must ascend within (0, {number_text(sample_rate)}] Hz, got {freq_low}, {freq_high}"
        )
    length = whole_number("frame_time in samples", math.ceil(sample_rate * frame_time), 1)
    shortest, longest = math.ceil(sample_rate / freq_high), math.ceil(sample_rate / freq_low)
    count = math.ceil(x.shape[-1] / length)
    x = padded(x, (0, longest + count * length - x.shape[-1]))
    frames = x[..., : count * length].unflatten(-1, (count, length))
    reach = length + longest
    ahead = x.double().unfold(-1, reach, length)[..., :count, :]  # a frame, and what the longest lag reaches
    sums = torch.fft.irfft(torch.fft.rfft(ahead) * torch.fft.rfft(frames.double(), reach).conj(), reach)
    energy = padded(ahead.square().cumsum(-1), (1, 0))
    norms = (EPSILON + (energy[..., length:] - energy[..., :-length]).clamp(min=0).sqrt()).square()
    found = (sums[..., : longest + 1] / norms[..., :1] / norms)[..., 1:]
    best, at = found[..., shortest:].max(-1)
    early, at_early = found[..., shortest : found.shape[-1] // 2].max(-1)
    lag = torch.where(early > NEARLY_THE_BEST * best, at_early, at) + shortest + 1
    past = (win_length - 1) // 2
    lag = torch.cat([lag[..., :1].expand(*lag.shape[:-1], past), lag], dim=-1)
    smooth = lag.unfold(-1, win_length, 1).median(-1).values
    return sample_rate / (EPSILON + smooth.to(torch.float32))


def frechet_distance(mu_x: Tensor, sigma_x: Tensor, mu_y: Tensor, sigma_y: Tensor) -> Tensor:
    """Return the Fréchet distance of two normal distributions, ().

    Source: D. C. Dowson, B. V. Landau, The Fréchet Distance between Multivariate Normal Distributions, J. Multivariate
    Analysis 12 (3), 1982.

    Args:
        mu_x, mu_y: means, (n,).
        sigma_x, sigma_y: covariances, (n, n).

    Raises:
        ArgumentError: shapes that don't fit.
    """
    n = mu_x.shape[-1] if mu_x.dim() == 1 else 0
    if not n or mu_y.shape != mu_x.shape or sigma_x.shape != (n, n) or sigma_y.shape != (n, n):
        shapes = ", ".join(str(tuple(each.shape)) for each in (mu_x, sigma_x, mu_y, sigma_y))
        raise ArgumentError(
            f"mu_x, sigma_x, mu_y, sigma_y must have the shapes (n,), (n, n), (n,), (n, n), got {shapes}"
        )
    roots: Tensor = torch.linalg.eigvals(sigma_x @ sigma_y).sqrt().real.sum()
    return (mu_x - mu_y).square().sum() + sigma_x.trace() + sigma_y.trace() - 2 * roots
