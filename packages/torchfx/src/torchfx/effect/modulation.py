"""Amplitude modulation."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor

from torchfx import _ops
from torchfx.core.processor import Processor
from torchfx.parameters import Value, frequency, number, sample_rate
from torchfx.plan import State
from torchfx.tensors import columns

__all__ = ["RingModulation", "Tremolo", "exact", "loop"]


class GainModulation(Processor):
    """Multiply a signal by middle + depth sin(2 pi hertz n / fs + 2 pi start). A subclass implements `oscillator`."""

    start: ClassVar[float] = 0.0
    """The oscillator's phase at the first sample, in turns."""

    @abstractmethod
    def oscillator(self) -> tuple[Value, Value, Value]:
        """Return the oscillator's frequency, middle and depth."""

    def init_state(
        self, shape: tuple[int, ...], rate: Any, dtype: torch.dtype = torch.float32, device: Any = "cpu"
    ) -> State:
        """Return the oscillator's phase at the first sample."""
        return (torch.full(self.output_shape(shape), self.start, dtype=torch.float64, device=device),)

    def step(self, x: Tensor, state: State, rate: Any) -> tuple[Tensor, State]:
        """Multiply the next block."""
        y, after = _ops.modulated_gain_forward(x, self._settings(rate, x.device), *state)
        return y, (after,)

    def native(self, program: Any, source: int, state: State, rate: Any) -> int | None:
        """Append the gain, if nothing in it is learned."""
        settings = self._settings(rate, torch.device("cpu"))
        if settings.requires_grad or state[0].shape != program.shape:
            return None
        found: int = program.modulated_gain(source, settings, *state)
        return found

    def _settings(self, rate: Any, device: torch.device) -> Tensor:
        hertz, middle, depth = self.oscillator()
        return columns((exact(hertz) / rate, middle, depth), device)


class Tremolo(GainModulation):
    """Modulate the level: y[n] = x[n] (1 - depth (1 - cos(2 pi rate_hz n / fs)) / 2).

    The gain goes from 1 down to 1 - depth and back, `rate_hz` times per second.

    Examples:
        >>> import torch
        >>> Tremolo(rate_hz=1.0, depth=0.5, fs=4)(torch.ones(5))
        tensor([1.0000, 0.7500, 0.5000, 0.7500, 1.0000])
    """

    rate_hz: Value = frequency(default=5.0, doc="modulation frequency")
    depth: Value = number(default=0.5, low=0.0, high=1.0, doc="how far down")
    fs: float | None = sample_rate(default=None)

    start = 0.25

    def oscillator(self) -> tuple[Value, Value, Value]:
        """Return a cosine between the two levels."""
        half = exact(self.depth) / 2
        return self.rate_hz, 1 - half, half


class RingModulation(GainModulation):
    """Multiply a signal by a sine: y[n] = x[n] sin(2 pi carrier n / fs).

    Each frequency f of the signal becomes carrier - f and carrier + f, each at -6 dB.

    Examples:
        >>> import torch
        >>> RingModulation(1.0, fs=4)(torch.ones(4)).round()
        tensor([ 0.,  1.,  0., -1.])
    """

    carrier: Value = frequency(default=440.0, doc="of the sine")
    fs: float | None = sample_rate(default=None)

    def oscillator(self) -> tuple[Value, Value, Value]:
        """Return the sine alone."""
        return self.carrier, 0.0, 1.0


def loop(feedback: Value) -> tuple[Value, ...]:
    """Return the feedback as the operators take it: None for the number 0."""
    return (feedback,) if isinstance(feedback, Tensor) or feedback != 0 else ()


def exact(value: Value) -> Value:
    """Return a number, or a tensor in float64, for results that must not be rounded to its type."""
    return value.double() if isinstance(value, Tensor) else value
