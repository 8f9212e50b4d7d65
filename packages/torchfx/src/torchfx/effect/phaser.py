"""Phaser."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torchfx import _ops
from torchfx.core.processor import Processor
from torchfx.effect.modulation import exact, loop
from torchfx.parameters import Value, count, frequency, number, sample_rate
from torchfx.plan import State
from torchfx.plan.handover import UNKNOWN_WAIT_S, Handover, kept, samples
from torchfx.tensors import columns

__all__ = ["Phaser"]


class Phaser(Processor):
    """Sweep notches through a signal: mix it with its output of all-pass filters with a modulated corner frequency.

    Each of the `stages` is (a + 1/z) / (1 + a/z), a = (tan(pi f / fs) - 1) / (tan(pi f / fs) + 1), which shifts its
    corner frequency f by -90 degrees; f = centre_frequency 2^(depth_octaves sin(2 pi rate_hz t)), at most 0.49 fs. At a
    `mix` of 0.5, each pair of stages gives one notch. The filters' input is x + feedback v, where v is their output,
    without a delay in the loop. With positive feedback, v has peaks of 1 / (1 - feedback) where it is in phase with x.

    Source: J. O. Smith, Physical Audio Signal Processing, "Phasing with First-Order Allpass Filters".

    Examples:
        >>> import torch
        >>> Phaser(fs=48_000)(torch.randn(2, 1000)).shape
        torch.Size([2, 1000])
    """

    rate_hz: Value = frequency(default=1.0, doc="modulation frequency of the corner")
    depth_octaves: Value = number(default=1.0, low=0.0, high=6.0, draws=(0.0, 2.0), doc="modulation depth, up and down")
    centre_frequency: Value = frequency(default=1300.0, doc="centre of the corner's modulation")
    stages: int = count(default=6, high=24, draws=(1, 4), doc="how many all-pass filters")
    mix: Value = number(default=0.5, low=0.0, high=1.0, doc="0: input only, 1: shifted signal only")
    feedback: Value = number(
        default=0.0,
        low=-0.95,
        high=0.95,
        doc="part of the shifted signal that is fed back; negative values invert it",
    )
    fs: float | None = sample_rate(default=None)

    def init_state(
        self, shape: tuple[int, ...], rate: Any, dtype: torch.dtype = torch.float32, device: Any = "cpu"
    ) -> State:
        """Return the filters at rest, and the phase 0."""
        leading = self.output_shape(shape)
        return (
            torch.zeros(self.stages, *leading, dtype=torch.float64, device=device),
            torch.zeros(leading, dtype=torch.float64, device=device),
        )

    def step(self, x: Tensor, state: State, rate: Any) -> tuple[Tensor, State]:
        """Filter the next block."""
        filters, phase = state
        y, phase, filters = _ops.phaser_forward(x, self._settings(rate, x.device), phase, filters)
        return y, (filters, phase)

    def native(self, program: Any, source: int, state: State, rate: Any) -> int | None:
        """Append the filters, if nothing in them is learned."""
        settings, (filters, phase) = self._settings(rate, torch.device("cpu")), state
        if settings.requires_grad or phase.shape != program.shape:
            return None
        found: int = program.phaser(source, settings, phase, filters)
        return found

    def take_over(self, before: Any, shape: tuple[int, ...], old: State, new: State, rate: Any) -> Handover:
        """Return the whole state if the filters and their input stay the same, else only the phase.

        An all-pass with another corner frequency cannot continue from this state without a jump, which the feedback
        would repeat.
        """
        handover = kept(old, new, rate)
        same = ("depth_octaves", "centre_frequency", "stages", "feedback")
        pairs = [[torch.as_tensor(getattr(each, name)) for each in (self, before)] for name in same]
        if all(own.shape == was.shape and torch.equal(own, was) for own, was in pairs):
            return handover
        return Handover((None, *handover.moves[1:]), samples(UNKNOWN_WAIT_S, rate), rises=True)

    def _settings(self, rate: Any, device: torch.device) -> Tensor:
        turns, centre = (exact(each) / rate for each in (self.rate_hz, self.centre_frequency))
        return columns((turns, centre, self.depth_octaves, self.mix, *loop(self.feedback)), device)
