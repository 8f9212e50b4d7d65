"""Noise: of several colours, by seed, channel and sample alone, and at a signal-to-noise ratio."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from torchfx import _ops
from torchfx.checks import whole_number
from torchfx.design.colored_noise import COLORS, color_sections, color_start
from torchfx.errors import ArgumentError, ArgumentTypeError
from torchfx.tensors import broadcast_shapes, check_signal, settings_on

__all__ = [
    "CHANNEL", "add_noise", "add_white", "audible", "color_state", "colored", "colored_from", "gain_at", "gain_over",
    "key_of", "magnitude", "mixed", "noise", "normal", "places", "white_level",
]  # fmt: skip

CHANNEL = 2**40
"""Between the places of two channels: no signal is as long."""

SEEDS = 0x9E3779B97F4A7C15
"""Between the keys of two seeds, modulo 2^62: they lie far apart."""


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
        color: "white", "pink" (-3.01 dB an octave) or "brown" (-6.02 dB an octave); coloured noise is flat below
            fs / 10000, at 48 kHz below 4.8 Hz.
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
    count = 2 * COLORS[color] + shape[-1]
    return _begun(torch.randn(*shape[:-1], count, generator=generator, dtype=dtype, device=device), color)


def places(position: Tensor, shape: Sequence[int]) -> Tensor:
    """Return where the numbers of a signal's channels begin, for leading dimensions `shape`; examples share them.

    Args:
        position: int64, (1,): how many samples there were before.
        shape: (..., channels), or () for a signal without channels.
    """
    if not shape:
        return position[0]
    return position + CHANNEL * torch.arange(shape[-1], device=position.device)


def key_of(seed: int) -> int:
    """Return the key of a seed's noise."""
    return (seed + 1) * SEEDS % 2**62


def normal(place: Tensor, time: int, key: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """Return normally distributed numbers from each place (...) on, (..., time), the same for the same arguments."""
    silence = torch.zeros((), dtype=dtype, device=place.device).expand(*place.shape, time)
    return _ops.noise_forward(silence, settings_on(1.0, place.device), place, key, "normal")


def colored_from(place: Tensor, time: int, color: str, key: int, dtype: torch.dtype) -> Tensor:
    """Return coloured noise (..., time) of the numbers from each place (...) on; see `normal`."""
    return _begun(normal(place, 2 * COLORS[color] + time, key, dtype), color)


def _begun(white: Tensor, color: str) -> Tensor:
    """Return coloured noise from white noise, of which the first samples make the filter's state."""
    start = 2 * COLORS[color]
    return colored(white[..., start:], color, color_state(white[..., :start], color))[0]


def color_state(normal: Tensor, color: str) -> Tensor:
    """Return a state for `colored` to start in, so that its noise is as strong from the first sample on.

    Args:
        normal: normally distributed numbers, (..., n), two for each of `COLORS[color]` sections.
        color: the colour.
    """
    values = normal.double() @ color_start(color).to(normal.device).T
    state: Tensor = values.unflatten(-1, (COLORS[color], 2)).movedim(-2, 0)
    return state


def colored(white: Tensor, color: str, state: Tensor) -> tuple[Tensor, Tensor]:
    """Return the next of coloured noise from the next of white noise (..., time), and the state after it."""
    if color == "white":
        return white, state
    return _ops.parallel_iir_forward(white, color_sections(color).to(white.device), state)


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
    over = noise.expand(*noise.shape[:-2], *x.shape[-2:])
    return mixed(x, noise, gain_at(snr_db, magnitude(x), magnitude(over)))


def add_white(x: Tensor, place: Tensor, key: int, snr_db: float | Tensor) -> Tensor:
    """Add `normal(place, ..., key)` at a signal-to-noise ratio, without holding it in memory."""
    gain = gain_at(snr_db, magnitude(x), white_level(place, x.shape[-1], key))
    return _ops.noise_forward(x, gain[..., 0], place, key, "normal")


def magnitude(x: Tensor) -> Tensor:
    """Return the root of the sum of squares over an example's samples and channels: float64, (..., 1, 1) or (1,)."""
    return _together(_ops.magnitude(x))


def white_level(place: Tensor, time: int, key: int) -> Tensor:
    """Return the magnitude of `normal(place, time, key)`, like `magnitude`."""
    return _together(_ops.noise_magnitude(place, time, key))


def _together(magnitudes: Tensor) -> Tensor:
    """Return the magnitude of an example from those of its channels, (..., channels) or (): (..., 1, 1) or (1,)."""
    if magnitudes.dim() == 0:
        return magnitudes[None]
    found: Tensor = torch.linalg.vector_norm(magnitudes, dim=-1, keepdim=True)
    return found[..., None]


def gain_at(snr_db: float | Tensor, signal_level: Tensor, noise_level: Tensor) -> Tensor:
    """Return what noise is multiplied by, from the magnitudes of both wholes: float64, (..., 1, 1) or (1,)."""
    return gain_over(snr_db, signal_level, audible(noise_level))


def audible(noise_level: Tensor) -> Tensor:
    """Return the magnitude of noise, 1 for silence: whatever that is multiplied by, nothing is added."""
    return torch.where(noise_level > 0, noise_level, 1.0)


def gain_over(snr_db: float | Tensor, signal_level: Tensor, noise_level: Tensor) -> Tensor:
    """Return the same for noise that is not silent."""
    if isinstance(snr_db, Tensor):
        ratio: Any = 10 ** (settings_on(snr_db, signal_level.device)[..., None] / -20)
    else:
        ratio = 10 ** (snr_db / -20)
    gain: Tensor = signal_level * ratio / noise_level
    return gain


def mixed(x: Tensor, noise: Tensor, gain: Tensor) -> Tensor:
    """Add noise to a signal."""
    return torch.addcmul(x, noise.to(x.dtype), gain.to(x.dtype))
