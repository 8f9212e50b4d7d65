"""Compander with a given transfer curve."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from torchfx import _ops
from torchfx._ops.dynamics.composite import QUIETEST
from torchfx.core.processor import Processor
from torchfx.effect.dynamics import channel_peak, levels_shape, smoothing
from torchfx.parameters import Value, decibels, flag, milliseconds, number, sample_rate, transfer_points
from torchfx.plan import Handover, State, kept
from torchfx.tensors import broadcast_shapes, columns, latest, settings_on

__all__ = ["Compand"]

LATE = 1
"""The place of the signal's delay in the state, after the smoothed magnitude."""


class Compand(Processor):
    """Compress or expand with a transfer curve that maps input levels to output levels, in dB.

    The level is the smoothed magnitude of the samples, with the time constants `attack_ms` for a rise and `release_ms`
    for a fall (63 % of the change). The curve is linear between the `points`. The last segment continues above the last
    point; below the first point the gain is constant. `knee_db` averages the curve over this range around the level,
    which rounds each bend to a parabola.

    In contrast, `Compressor` and `Expander` smooth the gain in dB.

    Source: the manual of SoX's effect `compand`, which FFmpeg has too. Both add the point (0, 0), and use a different
    parabola for the bends. Their "0.3,1 6:-70,-60,-20 -5 -90 0.2" corresponds to `Compand([[-70, -70], [-60, -20], [0,
    0]], 300, 1000, 6, -5, -90, 200)`.

    Examples:
        >>> import torch
        >>> levels = torch.tensor([0.001, 0.01, 0.1])  # -60, -40 and -20 dB
        >>> Compand([[-60, -60], [-40, -20], [0, 0]], release_ms=0.0, fs=48_000)(levels)
        tensor([0.0010, 0.1000, 0.3162])
    """

    points: Tensor = transfer_points(doc="input levels and their output levels, joined by lines")
    attack_ms: Value = milliseconds(default=0.0, draws=(0.1, 50.0), doc="time constant of a rising level")
    release_ms: Value = milliseconds(default=800.0, draws=(10.0, 500.0), doc="time constant of a falling level")
    knee_db: Value = number(default=0.0, low=0.0, high=200.0, unit="dB", draws=(0.0, 12.0), doc="width of the bends")
    makeup_db: Value = decibels(
        default=0.0, low=-200.0, high=200.0, draws=(0.0, 12.0), doc="gain applied after the curve"
    )
    initial_db: Value = decibels(
        default=0.0, low=-300.0, high=200.0, draws=(-90.0, 0.0), doc="level that a signal begins from"
    )
    lookahead_ms: float = milliseconds(
        default=0.0,
        high=10_000.0,
        draws=(0.05, 0.5),
        doc="look-ahead of the detector",
        learnable=False,
    )
    link: bool = flag(default=True, doc="applies the loudest channel's gain to all")
    fs: float | None = sample_rate(default=None)

    def latency_samples(self, rate: Any) -> int:
        """Return the look-ahead, to the nearest sample."""
        samples: int = round(self.lookahead_ms * rate / 1000)
        return samples

    def broadcast_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the leading dimensions, broadcast with the parameters' dimensions; raise if they do not broadcast."""
        return broadcast_shapes(x=super().broadcast_shape(shape), points=tuple(self.points.shape[:-2]))

    def init_state(
        self, shape: tuple[int, ...], rate: Any, dtype: torch.dtype = torch.float32, device: Any = "cpu"
    ) -> State:
        """Return the initial level, and silence in the look-ahead delay."""
        level = settings_on(10 ** (self.initial_db / 20), torch.device(device))
        late = torch.zeros(*shape, self.latency_samples(rate), dtype=dtype, device=device)
        return level.expand(self.broadcast_shape(levels_shape(shape, self.link))).clone(), late

    def step(self, x: Tensor, state: State, rate: Any) -> tuple[Tensor, State]:
        """Process the next block."""
        before, late = state
        settings = self._settings(rate, x.device)
        heard = (channel_peak(x) if self.link else x).abs().double()
        level, after = _ops.ballistics_forward(heard, settings[..., :2].expand(*before.shape, 2), before)
        if late.shape[-1]:
            x, late = torch.cat([late, x], dim=-1)[..., : x.shape[-1]], latest(late, x)
        gain = transferred(settings, 20 * torch.log10(level.clamp(min=QUIETEST)))
        return (x * 10 ** (gain / 20)).to(x.dtype), (after, late)

    def native(self, program: Any, source: int, state: State, rate: Any) -> int | None:
        """Append delay and gain, if nothing in it is learned."""
        settings, (level, late) = self._settings(rate, torch.device("cpu")), state
        if settings.requires_grad or level.requires_grad or level.shape != levels_shape(program.shape, self.link):
            return None
        key = source
        if late.shape[-1]:
            source = program.delay(source, late)
            if self.link:
                key = program.maximum(key, level.new_empty(*level.shape, 0, dtype=program.dtype))
        found: int = program.compand(source, settings, level, key)
        return found

    def take_over(self, before: Any, shape: tuple[int, ...], old: State, new: State, rate: Any) -> Handover:
        """Return level and past signal unchanged; a longer look-ahead fades in once its delay line is full."""
        return kept(old, new, rate, max(0, new[LATE].shape[-1] - old[LATE].shape[-1]))

    def _settings(self, rate: Any, device: torch.device) -> Tensor:
        """Return what the native step takes, (..., 3 + 4 points): csrc/torchfx_dsp.h."""
        points = settings_on(self.points, device)
        level, gain = points[..., 0], points[..., 1] - points[..., 0]
        slope = gain.diff(dim=-1) / level.diff(dim=-1)
        nothing = torch.zeros_like(level[..., :1])
        slope = torch.cat([slope, slope[..., -1:] if slope.shape[-1] else nothing], dim=-1)
        half_knee = settings_on(self.knee_db, device)[..., None] / 2
        bend = slope.diff(dim=-1, prepend=nothing) * torch.where(half_knee > 0, 0.25 / half_knee.clamp(min=1e-9), 0.0)
        gain = gain + settings_on(self.makeup_db, device)[..., None]
        curve = torch.stack(torch.broadcast_tensors(level, gain, slope, bend), dim=-1).flatten(-2)
        times = (smoothing(each, rate) for each in (self.attack_ms, self.release_ms))
        own = columns((*times, self.knee_db / 2), device)
        leading = torch.broadcast_shapes(own.shape[:-1], curve.shape[:-1])
        return torch.cat([own.expand(*leading, -1), curve.expand(*leading, -1)], dim=-1)


def transferred(settings: Tensor, level: Tensor) -> Tensor:
    """Return a compander's gain in dB at levels in dB (..., time), for its settings (..., 3 + 4 points)."""
    half_knee, rows = settings[..., 2:3], settings[..., 3:].unflatten(-1, (-1, 4))
    straight: Tensor = rows[..., 0, 1, None]
    rounding = torch.zeros_like(level)
    for at, gain, slope, bend in (row[..., None].unbind(-2) for row in rows.unbind(-2)):
        over = level - at
        straight = torch.where(over > 0, gain + slope * over, straight)
        rounding = rounding + bend * (half_knee - over.abs()).clamp(min=0).square()
    return straight + rounding
