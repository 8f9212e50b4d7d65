"""Modulated delays: chorus, flanger and vibrato."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from torchfx import _ops
from torchfx._ops.modulation.schema import LEAST
from torchfx.core.processor import Processor
from torchfx.effect.modulation import exact, loop
from torchfx.errors import ArgumentError
from torchfx.parameters import Value, milliseconds, number, sample_rate
from torchfx.plan import State
from torchfx.plan.handover import Handover, kept
from torchfx.tensors import columns, is_readable

__all__ = ["Chorus", "Flanger", "Vibrato"]

LONGEST_MS = 100.0
"""The longest delay at the end of its swing. Streams keep this much of the past for every delay."""


class Chorus(Processor):
    """Add a copy of the signal with a modulated delay, which detunes it slightly.

    y(t) = (1 - mix) x(t) + mix v(t), v(t) = w(t - d(t)), w(t) = x(t) + feedback v(t),
    d(t) = centre_delay_ms + depth_ms sin(2 pi rate_hz t), at least 2 samples. Between samples, w is interpolated by
    Catmull-Rom cubics.

    Examples:
        >>> import torch
        >>> two_samples_late = Chorus(depth_ms=0.0, centre_delay_ms=0.0, mix=1.0, fs=48_000)
        >>> two_samples_late(torch.tensor([1.0, 2.0, 3.0, 4.0]))
        tensor([0., 0., 1., 2.])
    """

    rate_hz: Value = number(default=1.0, low=0.0, high=100.0, unit="Hz", doc="modulation frequency of the delay")
    depth_ms: Value = milliseconds(default=2.0, high=50.0, draws=(0.01, 0.05), doc="modulation depth, to each side")
    centre_delay_ms: Value = milliseconds(default=7.0, high=50.0, draws=(0.1, 0.2), doc="centre of the modulation")
    mix: Value = number(default=0.5, low=0.0, high=1.0, doc="0: input only, 1: delayed signal only")
    feedback: Value = number(
        default=0.0,
        low=-0.95,
        high=0.95,
        doc="part of the delayed signal that is fed back; negative values invert it",
    )
    fs: float | None = sample_rate(default=None)

    def check_parameters(self) -> None:
        """Raise if the delay would become negative."""
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
        """Return silence in the delay, and the phase 0."""
        leading, kept = self.output_shape(shape), math.ceil(LONGEST_MS / 1000 * rate) + LEAST
        return (
            torch.zeros(*leading, kept, dtype=dtype, device=device),
            torch.zeros(leading, dtype=torch.float64, device=device),
        )

    def step(self, x: Tensor, state: State, rate: Any) -> tuple[Tensor, State]:
        """Delay the next block."""
        past, phase = state
        y, phase, past = _ops.modulated_delay_forward(x, self._settings(rate, x.device), phase, past)
        return y, (past, phase)

    def native(self, program: Any, source: int, state: State, rate: Any) -> int | None:
        """Append the delay, if nothing in it is learned."""
        settings, (past, phase) = self._settings(rate, torch.device("cpu")), state
        if settings.requires_grad or phase.shape != program.shape:
            return None
        found: int = program.modulated_delay(source, settings, phase, past)
        return found

    def take_over(self, before: Any, shape: tuple[int, ...], old: State, new: State, rate: Any) -> Handover:
        """Return the whole state if the input of the delay line stays the same, else only the phase.

        The content that another loop left would cause a jump, which the feedback would repeat.
        """
        handover = kept(old, new, rate)
        own, was = (each._settings(rate, torch.device("cpu")) for each in (self, before))
        mix = 3
        alike = own.shape == was.shape and torch.equal(own[..., :mix], was[..., :mix])
        alike = alike and torch.equal(own[..., mix + 1 :], was[..., mix + 1 :])
        if alike or own.shape[-1] == was.shape[-1] == mix + 1:
            return handover
        return Handover((None, *handover.moves[1:]), rises=True)

    def _settings(self, rate: Any, device: torch.device) -> Tensor:
        centre, depth = (exact(each) * (rate / 1000) for each in (self.centre_delay_ms, self.depth_ms))
        return columns((exact(self.rate_hz) / rate, centre, depth, self.mix, *loop(self.feedback)), device)


class Flanger(Chorus):
    """Sweep comb-filter notches through a signal: a chorus with a very short delay.

    y(t) = (1 - mix) x(t) + mix v(t), v(t) = w(t - d(t)), w(t) = x(t) + feedback v(t),
    d(t) = centre_delay_ms + depth_ms sin(2 pi rate_hz t), at least 2 samples. At a delay d without feedback, the
    notches lie at (k + 1/2) / d. Positive feedback gives peaks at k / d, negative feedback at (k + 1/2) / d.

    Examples:
        >>> import torch
        >>> Flanger(fs=48_000)(torch.randn(2, 1000)).shape
        torch.Size([2, 1000])
    """

    rate_hz: Value = number(default=0.5, low=0.0, high=100.0, unit="Hz", doc="modulation frequency of the delay")
    depth_ms: Value = milliseconds(default=2.0, high=50.0, draws=(0.01, 0.05), doc="modulation depth, to each side")
    centre_delay_ms: Value = milliseconds(default=2.5, high=50.0, draws=(0.1, 0.2), doc="centre of the modulation")


class Vibrato(Chorus):
    """Modulate the pitch with a modulated delay, without the dry signal.

    y(t) = x(t - d(t)), d(t) = centre_delay_ms + depth_ms sin(2 pi rate_hz t), at least 2 samples. A tone of frequency f
    becomes f (1 - d'(t)): its frequency deviates by at most the fraction 2 pi rate_hz depth_ms / 1000.

    Examples:
        >>> import torch
        >>> Vibrato(fs=48_000)(torch.randn(2, 1000)).shape
        torch.Size([2, 1000])
    """

    mix = 1.0
    feedback = 0.0
    rate_hz: Value = number(default=5.0, low=0.0, high=100.0, unit="Hz", doc="modulation frequency of the delay")
    depth_ms: Value = milliseconds(default=1.0, high=50.0, draws=(0.01, 0.05), doc="modulation depth, to each side")
    centre_delay_ms: Value = milliseconds(default=2.0, high=50.0, draws=(0.1, 0.2), doc="centre of the modulation")
