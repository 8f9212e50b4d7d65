"""Transient shaper."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from torchfx import _ops
from torchfx.core.processor import Processor
from torchfx.effect.dynamics import channel_peak, levels_shape, smoothing
from torchfx.parameters import Value, decibels, flag, milliseconds, sample_rate
from torchfx.plan import State
from torchfx.tensors import columns, settings_on

__all__ = ["TransientShaper"]

LOWEST_HZ = 20.0
"""Tones from here on count as steady: a peak counts for half their period."""

QUIETEST_DB = -120.0
"""Levels end here."""

SPAN_DB = 20.0
"""Where a level lies so far from its envelope, all of the gain is applied."""


class TransientShaper(Processor):
    """Boost or cut the attack and the sustain of notes, independently of their level.

    L is the level in dB of peaks held for half a period of 20 Hz. The first envelope follows L with the time constant
    `attack_ms` when it rises, and immediately when it falls. The second envelope follows L immediately when it rises,
    and with the time constant `sustain_ms` when it falls. The gain in dB is `attack_db` times the distance between L
    and the first envelope, plus `sustain_db` times the distance between L and the second, each divided by 20 dB and
    limited to 1. A steady tone keeps its level.

    Examples:
        >>> import torch
        >>> y = TransientShaper(attack_db=6.0, fs=48_000)(torch.full((48_000,), 0.1))
        >>> y[[0, 47_999]]  # 6 dB more where it begins
        tensor([0.1995, 0.1000])
    """

    attack_db: Value = decibels(default=6.0, low=-60.0, high=60.0, draws=(-12.0, 12.0), doc="gain of attacks")
    sustain_db: Value = decibels(default=0.0, low=-60.0, high=60.0, draws=(-12.0, 12.0), doc="gain of decays")
    attack_ms: Value = milliseconds(default=20.0, draws=(5.0, 50.0), doc="duration of an attack")
    sustain_ms: Value = milliseconds(default=200.0, draws=(50.0, 500.0), doc="time over which a decay is compared")
    link: bool = flag(default=True, doc="applies the loudest channel's gain to all")
    fs: float | None = sample_rate(default=None)

    def init_state(
        self, shape: tuple[int, ...], rate: Any, dtype: torch.dtype = torch.float32, device: Any = "cpu"
    ) -> State:
        """Return the state at rest: past levels and both envelopes at the level of silence."""
        shape = levels_shape(shape, self.link)
        envelope = torch.zeros(self.broadcast_shape(shape), dtype=torch.float64, device=device)
        held = math.ceil(rate / (2 * LOWEST_HZ))
        return torch.zeros(*shape, held, dtype=dtype, device=device), envelope, envelope.clone()

    def step(self, x: Tensor, state: State, rate: Any) -> tuple[Tensor, State]:
        """Shape the next block."""
        past, *envelopes = state
        peaks = torch.cat([past, (channel_peak(x) if self.link else x).abs()], dim=-1)
        held = _ops.sliding_max(peaks, past.shape[-1] + 1).double()
        level = 20 * torch.log10(held.clamp(min=10 ** (QUIETEST_DB / 20))) - QUIETEST_DB
        gain: Any = 0.0
        slow = (smoothing(self.attack_ms, rate), 1.0), (1.0, smoothing(self.sustain_ms, rate))
        for i, (times, db) in enumerate(zip(slow, (self.attack_db, self.sustain_db), strict=True)):
            before = envelopes[i]
            envelope, envelopes[i] = _ops.ballistics_forward(
                level, columns(times, x.device).expand(*before.shape, 2), before
            )
            part = ((level - envelope).abs() / SPAN_DB).clamp(max=1.0)
            gain = gain + settings_on(db, x.device)[..., None] * part
        return (x * 10 ** (gain / 20)).to(x.dtype), (peaks[..., x.shape[-1] :].clone(), *envelopes)

    def native(self, program: Any, source: int, state: State, rate: Any) -> int | None:
        """Append hold and gain, if nothing in it is learned."""
        times = smoothing(self.attack_ms, rate), smoothing(self.sustain_ms, rate)
        values = (self.attack_db, self.sustain_db, *times, QUIETEST_DB, SPAN_DB)
        settings, (past, rising, falling) = columns(values, torch.device("cpu")), state
        if settings.requires_grad or rising.shape != levels_shape(program.shape, self.link):
            return None
        found: int = program.transient(source, program.maximum(source, past), settings, rising, falling)
        return found
