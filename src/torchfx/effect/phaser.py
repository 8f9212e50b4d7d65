"""Phaser."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torchfx.core.processor import Processor
from torchfx.effect.modulation import oscillator_phase, resting_phase
from torchfx.functional.time_varying import time_varying_sosfilt
from torchfx.parameters import Value, count, frequency, number, sample_rate
from torchfx.plan import State
from torchfx.tensors import settings_on

__all__ = ["Phaser"]

HIGHEST = 0.49
"""Of a stage's corner, over the sample rate."""


class Phaser(Processor):
    """Sweep notches through a signal: it is mixed with itself behind all-pass filters whose corner swings.

    Each of the `stages` is (a + 1/z) / (1 + a/z), a = (tan(pi f / fs) - 1) / (tan(pi f / fs) + 1), which shifts its
    corner f by -90 degrees; f = centre_frequency 2^(depth_octaves sin(2 pi rate_hz t)), at most 0.49 fs. Two stages
    make a notch, where `mix` is 0.5.

    Source: J. O. Smith, Physical Audio Signal Processing, "Phasing with First-Order Allpass Filters".

    Examples:
        >>> import torch
        >>> Phaser(fs=48_000)(torch.randn(2, 1000)).shape
        torch.Size([2, 1000])
    """

    rate_hz: Value = frequency(default=1.0, doc="how often the corner swings")
    depth_octaves: Value = number(default=1.0, low=0.0, high=6.0, draws=(0.0, 2.0), doc="how far up and down")
    centre_frequency: Value = frequency(default=1300.0, doc="the corner's middle")
    stages: int = count(default=6, high=24, draws=(1, 4), doc="how many all-pass filters")
    mix: Value = number(default=0.5, low=0.0, high=1.0, doc="from 0, the signal alone, to 1, the shifted one alone")
    fs: float | None = sample_rate(default=None)

    def init_state(
        self, shape: tuple[int, ...], rate: Any, dtype: torch.dtype = torch.float32, device: Any = "cpu"
    ) -> State:
        """Return the filters at rest, and the phase 0."""
        filters = torch.zeros(self.stages, *self.output_shape(shape), 2, dtype=torch.float64, device=device)
        return filters, resting_phase(self.rate_hz, device)

    def step(self, x: Tensor, state: State, rate: Any) -> tuple[Tensor, State]:
        """Filter the next block."""
        if x.shape[-1] == 0:
            return x, state
        filters, start = state
        given, x = x.dtype, x.expand(*filters.shape[1:-1], x.shape[-1]).double()
        phase, after = oscillator_phase(self.rate_hz, start, x.shape[-1], rate)
        centre, depth, mix = (
            settings_on(x.device, each)[..., None] for each in (self.centre_frequency, self.depth_octaves, self.mix)
        )
        corner = centre * torch.exp2(depth * torch.sin(2 * torch.pi * phase))
        tangent = torch.tan((torch.pi / rate) * corner.clamp(max=HIGHEST * rate))
        a = (tangent - 1) / (tangent + 1)
        one, none = torch.ones_like(a), torch.zeros_like(a)
        stage = torch.stack([a, one, none, one, a, none], dim=-1)[..., None, :]
        shifted, filters = time_varying_sosfilt(stage.expand(*stage.shape[:-2], self.stages, 6), x, filters)
        return ((1 - mix) * x + mix * shifted).to(given), (filters, after)
