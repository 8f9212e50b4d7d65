"""Delays that swing: chorus, flanger and vibrato."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from torchfx.core.processor import Processor
from torchfx.effect.modulation import oscillator_phase, resting_phase
from torchfx.errors import ArgumentError
from torchfx.parameters import Value, milliseconds, number, sample_rate
from torchfx.plan import State
from torchfx.tensors import is_readable, settings_on

__all__ = ["Chorus", "Flanger", "Vibrato"]

LONGEST_MS = 100.0
"""Of a delay at the end of its swing; streams keep so much of the past whatever the delay is."""

LEAST = 2
"""Samples of delay that the interpolation takes."""


class Chorus(Processor):
    """Double a voice with one that is late by a swinging time, and so a little out of tune.

    y(t) = (1 - mix) x(t) + mix x(t - d(t)), d(t) = centre_delay_ms + depth_ms sin(2 pi rate_hz t), at least 2 samples.
    Between samples, the signal is interpolated by Catmull-Rom cubics.

    Examples:
        >>> import torch
        >>> two_samples_late = Chorus(depth_ms=0.0, centre_delay_ms=0.0, mix=1.0, fs=48_000)
        >>> two_samples_late(torch.tensor([1.0, 2.0, 3.0, 4.0]))
        tensor([0., 0., 1., 2.])
    """

    rate_hz: Value = number(default=1.0, low=0.0, high=100.0, unit="Hz", doc="how often the delay swings")
    depth_ms: Value = milliseconds(default=2.0, high=50.0, draws=(0.01, 0.05), doc="how far it swings to each side")
    centre_delay_ms: Value = milliseconds(default=7.0, high=50.0, draws=(0.1, 0.2), doc="its middle")
    mix: Value = number(default=0.5, low=0.0, high=1.0, doc="from 0, the signal alone, to 1, the delayed one alone")
    fs: float | None = sample_rate(default=None)

    def check_parameters(self) -> None:
        """Raise where the delay would swing below 0."""
        depth, centre = (torch.as_tensor(each) for each in (self.depth_ms, self.centre_delay_ms))
        if is_readable(depth) and is_readable(centre) and bool((depth > centre).any()):
            shown = self.declarations["depth_ms"].show
            raise ArgumentError(
                f"depth_ms must lie in [0, centre_delay_ms] = [0, {shown(self.centre_delay_ms)}] ms, "
                f"got {shown(self.depth_ms)}"
            )

    def init_state(
        self, shape: tuple[int, ...], rate: Any, dtype: torch.dtype = torch.float32, device: Any = "cpu"
    ) -> State:
        """Return silence for past input, and the phase 0."""
        past = torch.zeros(
            *self.output_shape(shape), math.ceil(LONGEST_MS / 1000 * rate) + LEAST, dtype=dtype, device=device
        )
        return past, resting_phase(self.rate_hz, device)

    def step(self, x: Tensor, state: State, rate: Any) -> tuple[Tensor, State]:
        """Delay the next block."""
        past, start = state
        time, x = x.shape[-1], x.expand(*past.shape[:-1], x.shape[-1])
        heard = torch.cat([past, x], dim=-1)
        phase, after = oscillator_phase(self.rate_hz, start, time, rate)
        centre, depth, mix = (
            settings_on(x.device, each)[..., None] for each in (self.centre_delay_ms, self.depth_ms, self.mix)
        )
        delay = ((centre + depth * torch.sin(2 * torch.pi * phase)) * (rate / 1000)).clamp(min=LEAST)
        wet = _delayed(heard, delay)
        return ((1 - mix) * x.double() + mix * wet).to(x.dtype), (heard[..., time:], after)


class Flanger(Chorus):
    """Sweep a comb of notches through a signal: a chorus whose delay is so short that both sound as one.

    y(t) = (1 - mix) x(t) + mix x(t - d(t)), d(t) = centre_delay_ms + depth_ms sin(2 pi rate_hz t), at least 2 samples.
    While the delay is d, the notches lie at (k + 1/2) / d.

    Examples:
        >>> import torch
        >>> Flanger(fs=48_000)(torch.randn(2, 1000)).shape
        torch.Size([2, 1000])
    """

    rate_hz: Value = number(default=0.5, low=0.0, high=100.0, unit="Hz", doc="how often the delay swings")
    depth_ms: Value = milliseconds(default=2.0, high=50.0, draws=(0.01, 0.05), doc="how far it swings to each side")
    centre_delay_ms: Value = milliseconds(default=2.5, high=50.0, draws=(0.1, 0.2), doc="its middle")


class Vibrato(Chorus):
    """Swing the pitch: the signal alone, late by a swinging time.

    y(t) = x(t - d(t)), d(t) = centre_delay_ms + depth_ms sin(2 pi rate_hz t), at least 2 samples. A tone of frequency f
    becomes f (1 - d'(t)): it swings by 2 pi rate_hz depth_ms / 1000 of itself to each side.

    Examples:
        >>> import torch
        >>> Vibrato(fs=48_000)(torch.randn(2, 1000)).shape
        torch.Size([2, 1000])
    """

    mix = 1.0
    rate_hz: Value = number(default=5.0, low=0.0, high=100.0, unit="Hz", doc="how often the delay swings")
    depth_ms: Value = milliseconds(default=1.0, high=50.0, draws=(0.01, 0.05), doc="how far it swings to each side")
    centre_delay_ms: Value = milliseconds(default=2.0, high=50.0, draws=(0.1, 0.2), doc="its middle")


def _delayed(x: Tensor, delay: Tensor) -> Tensor:
    """Return the end of a signal (..., n), delayed by a time of its own at each sample: float64 (..., time), >= 2.

    Cubics whose slopes at a sample are half the difference of its neighbours have a steady first derivative: so has the
    result, by the delay (E. Catmull, R. Rom, A Class of Local Interpolating Splines, 1974).
    """
    whole = delay.detach().ceil()
    f = whole - delay  # of the delay alone: a place in the signal has fewer digits behind the point
    n, time = x.shape[-1], delay.shape[-1]
    left = (torch.arange(n - time, n, device=x.device) - whole.long()).clamp(1, n - 3)
    index = left.expand(*x.shape[:-1], left.shape[-1])
    weights = (
        f * (f * (2 - f) - 1) / 2,
        f * f * (3 * f - 5) / 2 + 1,
        f * (f * (4 - 3 * f) + 1) / 2,
        f * f * (f - 1) / 2,
    )
    first, *rest = (weight * x.gather(-1, index + k) for k, weight in enumerate(weights, start=-1))
    return first + rest[0] + rest[1] + rest[2]
