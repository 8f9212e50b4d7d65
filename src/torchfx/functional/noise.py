"""Noise of several colours, and noise at a signal-to-noise ratio."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from torchfx.checks import whole_number
from torchfx.errors import ArgumentError, ArgumentTypeError
from torchfx.tensors import broadcast_shapes, check_signal

__all__ = ["COLORS", "add_noise", "colored", "noise"]

COLORS = {"white": 0.0, "pink": 1.0, "brown": 2.0}
"""The power of noise is proportional to 1 / f to this power: 0, -3.01 and -6.02 dB an octave."""

FLAT_BELOW = 1e-4
"""As a part of the sample rate: from here down to 0 Hz, inaudible, coloured noise is as strong as here."""


def noise(
    shape: Sequence[int],
    color: str = "white",
    generator: torch.Generator | None = None,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | None = None,
) -> Tensor:
    """Return normally distributed noise.

    Args:
        shape: (..., time); all but the last dimension count noises that are independent of each other.
        color: "white", "pink" (-3.01 dB an octave) or "brown" (-6.02 dB an octave). Colours hold from fs / 10000 to
            fs / 2, at 48 kHz from 4.8 Hz on.
        generator: where the numbers come from; None is PyTorch's own, which `torch.manual_seed` sets.
        dtype: float32 or float64.
        device: the generator's.

    Returns:
        The noise; its expected power is 1.

    Raises:
        ArgumentError: an argument out of range.

    Examples:
        >>> import torch
        >>> hiss = noise((2, 48_000), "pink", torch.Generator().manual_seed(0))
        >>> hiss.shape, round(float(hiss.square().mean()), 1)
        (torch.Size([2, 48000]), 1.0)
    """
    shape = tuple(shape)
    if not shape:
        raise ArgumentError("shape must be (..., time), got ()")
    shape = (*(whole_number("shape", size, 0) for size in shape[:-1]), whole_number("shape", shape[-1], 1))
    if color not in COLORS:
        raise ArgumentError(f"color must be one of {', '.join(COLORS)}, got {color!r}")
    if dtype not in {torch.float32, torch.float64}:
        raise ArgumentTypeError(f"dtype must be float32 or float64, got {dtype}")
    white = torch.randn(*shape[:-1], drawn(shape[-1], color), generator=generator, dtype=dtype, device=device)
    return colored(white, color)[..., : shape[-1]]


def drawn(time: int, color: str) -> int:
    """Return how many samples of white noise to draw: coloured noise is transformed, which goes by small factors."""
    step = 1 if color == "white" else 1 << max(0, time.bit_length() - 5)
    return -(-time // step) * step


def colored(white: Tensor, color: str) -> Tensor:
    """Return white noise (..., time) with the spectrum of a colour and the same expected power."""
    time = white.shape[-1]
    if color == "white" or time == 1:
        return white
    spectrum = torch.fft.rfft(white)
    frequencies = torch.fft.rfftfreq(time, device=white.device, dtype=torch.float64).clamp(min=FLAT_BELOW)
    gains = frequencies ** (-COLORS[color] / 2)
    both_sides = torch.cat([gains, gains[1 : (time + 1) // 2]])
    found: Tensor = torch.fft.irfft(spectrum * (gains / both_sides.square().mean().sqrt()).to(white.dtype), time)
    return found


def add_noise(x: Tensor, noise: Tensor, snr_db: float | Tensor) -> Tensor:
    """Add noise at a signal-to-noise ratio: that of both powers over all samples and channels of an example.

    Args:
        x: float32 or float64, (time,), or (..., channels, time).
        noise: broadcasts to x.
        snr_db: in decibels; a number, or a tensor that broadcasts with x's leading dimensions: (batch, 1) for one value
            per example.

    Returns:
        The sum; to silence, nothing is added.

    Raises:
        ArgumentError: shapes that don't fit.

    Examples:
        >>> import torch
        >>> x, hiss = torch.ones(1, 4), torch.tensor([[1.0, -1.0, 1.0, -1.0]])
        >>> add_noise(x, hiss, 20.0)
        tensor([[1.1000, 0.9000, 1.1000, 0.9000]])
    """
    check_signal(x)
    if broadcast_shapes(x=x.shape, noise=noise.shape) != tuple(x.shape):
        raise ArgumentError(f"noise must broadcast to x, {tuple(x.shape)}, got {tuple(noise.shape)}")
    over = (-2, -1) if x.dim() > 1 else (-1,)
    wide = noise.double().expand(x.shape)
    signal_power, noise_power = (each.double().square().mean(over, keepdim=True) for each in (x, wide))
    ratio = snr_db.double()[..., None] if isinstance(snr_db, Tensor) else torch.tensor(snr_db, dtype=torch.float64)
    heard = (signal_power > 0) & (noise_power > 0)
    # Apart, so that very quiet powers don't leave the range, and with derivatives at 0.
    factors = [torch.where(heard, each, 1.0).sqrt() for each in (signal_power, noise_power)]
    factor = torch.where(heard, factors[0] / factors[1], 0.0) * torch.exp(ratio.to(x.device) * (-math.log(10) / 20))
    return (x.double() + factor * wide).to(x.dtype)
