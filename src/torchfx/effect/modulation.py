"""Gains that swing."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor

from torchfx.core.processor import Processor
from torchfx.parameters import Value, frequency, number, sample_rate
from torchfx.plan import State
from torchfx.tensors import settings_on

__all__ = ["RingModulation", "Tremolo", "oscillator_phase", "resting_phase"]


COARSE_BITS = 24
"""Of an oscillator's turns per sample, behind the point: their product with up to 2^29 samples is exact."""


class GainModulation(Processor):
    """Multiply a signal by a function of an oscillator's phase. A subclass defines `hertz` and `gain`."""

    @abstractmethod
    def hertz(self) -> Value:
        """Return the oscillator's frequency."""

    @abstractmethod
    def gain(self, angle: Tensor) -> Tensor:
        """Return the factor of each sample, for the oscillator's angle in radians, float64 (..., time)."""

    def init_state(
        self, shape: tuple[int, ...], rate: Any, dtype: torch.dtype = torch.float32, device: Any = "cpu"
    ) -> State:
        """Return the oscillator's phase at the first sample: 0."""
        return (resting_phase(self.hertz(), device),)

    def step(self, x: Tensor, state: State, rate: Any) -> tuple[Tensor, State]:
        """Multiply the next block."""
        phase, after = oscillator_phase(self.hertz(), state[0], x.shape[-1], rate)
        return x * self.gain(2 * torch.pi * phase).to(x.dtype), (after,)


class Tremolo(GainModulation):
    """Swing the level: y[n] = x[n] (1 - depth (1 - cos(2 pi rate_hz n / fs)) / 2).

    The level goes from 1 down to 1 - depth and back, `rate_hz` times a second.

    Examples:
        >>> import torch
        >>> Tremolo(rate_hz=1.0, depth=0.5, fs=4)(torch.ones(5))
        tensor([1.0000, 0.7500, 0.5000, 0.7500, 1.0000])
    """

    rate_hz: Value = frequency(default=5.0, doc="how often")
    depth: Value = number(default=0.5, low=0.0, high=1.0, doc="how far down")
    fs: float | None = sample_rate(default=None)

    def hertz(self) -> Value:
        """Return the rate."""
        return self.rate_hz

    def gain(self, angle: Tensor) -> Tensor:
        """Return the level."""
        depth = settings_on(angle.device, self.depth)[..., None]
        return 1 - depth * (1 - torch.cos(angle)) / 2


class RingModulation(GainModulation):
    """Multiply a signal by a sine: y[n] = x[n] sin(2 pi carrier n / fs).

    Every frequency f of the signal becomes two, carrier - f and carrier + f, each 6 dB down.

    Examples:
        >>> import torch
        >>> RingModulation(1.0, fs=4)(torch.ones(4)).round()
        tensor([ 0.,  1.,  0., -1.])
    """

    carrier: Value = frequency(default=440.0, doc="of the sine")
    fs: float | None = sample_rate(default=None)

    def hertz(self) -> Value:
        """Return the carrier."""
        return self.carrier

    def gain(self, angle: Tensor) -> Tensor:
        """Return the sine."""
        return torch.sin(angle)


def resting_phase(hertz: Value, device: Any) -> Tensor:
    """Return the phase 0, for each value of a frequency."""
    return torch.zeros(hertz.shape if isinstance(hertz, Tensor) else (), dtype=torch.float64, device=device)


def oscillator_phase(hertz: Value, start: Tensor, count: int, rate: float) -> tuple[Tensor, Tensor]:
    """Return an oscillator's phase in turns at the next samples, float64 (..., count), and the one behind them.

    Args:
        hertz: its frequency, or one for each example (...).
        start: its phase at the first sample, float64, (...).
        count: how many samples.
        rate: sample rate, Hz.
    """
    turns = settings_on(start.device, hertz)[..., None] / rate
    n = torch.arange(count + 1, dtype=torch.float64, device=start.device)
    coarse = (turns.detach() * 2**COARSE_BITS).round() / 2**COARSE_BITS  # n of these are exact, and so are their turns
    phase = start[..., None] + ((coarse * n) % 1.0 + (turns - coarse) * n)
    return phase[..., :-1], phase[..., -1] % 1.0
