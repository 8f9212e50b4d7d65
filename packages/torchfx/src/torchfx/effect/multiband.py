"""Multiband compressor and de-esser."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from torchfx import _ops
from torchfx.core.processor import Processor
from torchfx.design import crossover
from torchfx.effect.dynamics import StaticCurve, gain_settings, levels_shape
from torchfx.errors import ArgumentError
from torchfx.parameters import (
    Value,
    decibels,
    flag,
    frequencies,
    frequency,
    milliseconds,
    number,
    per_band,
    ratio,
    sample_rate,
)
from torchfx.plan import Handover, State, kept
from torchfx.plan.handover import sections_handover
from torchfx.tensors import broadcast_shapes, settings_on

__all__ = ["DeEsser", "MultibandCompressor"]

ORDER = 4
"""Order of the Linkwitz-Riley filters between bands: 24 dB per octave, the usual one."""

CHANNELS = -3
"""Their dimension, in front of bands and time."""

Bands = float | Sequence[float] | Tensor


class BandDynamics(Processor):
    """Split a signal with Linkwitz-Riley filters, multiply each band by a gain that follows its level, and add the
    bands.

    A subclass declares the parameters and implements `edges` and `settings`.
    """

    @abstractmethod
    def edges(self) -> Any:
        """Return the frequencies between bands, Hz."""

    @abstractmethod
    def settings(self, rate: float, device: torch.device) -> Tensor:
        """Return each band's settings, as `torchfx._ops.dynamics_forward` takes them, (..., bands, 8)."""

    def init_state(
        self, shape: tuple[int, ...], rate: Any, dtype: torch.dtype = torch.float32, device: Any = "cpu"
    ) -> State:
        """Return the state at rest: zero filter states and a gain of 0 dB in each band."""
        edges = len(self.edges())
        bands, sections = edges + 1, edges * ORDER // 2  # the highest band has both halves of each high-pass
        own = tuple(self.settings(rate, torch.device(device)).shape[:-2])
        levels = torch.broadcast_shapes(levels_shape(shape, self.link), own)
        filters = [torch.zeros(sections, *shape, 2, dtype=torch.float64, device=device) for _ in range(bands)]
        return *filters, *(torch.zeros(levels, dtype=torch.float64, device=device) for _ in range(bands))

    def step(self, x: Tensor, state: State, rate: Any) -> tuple[Tensor, State]:
        """Process the next block."""
        bands = len(state) // 2
        filters, before = torch.stack(state[:bands], dim=-2), torch.stack(state[bands:], dim=-1)
        sos = settings_on(crossover(self.edges(), ORDER, rate), x.device)
        parts, filters = _ops.parallel_iir_forward(x.double()[..., None, :], sos, filters)
        link = CHANNELS if self.link else None
        parts, after = _ops.dynamics_forward(parts, None, self.settings(rate, x.device), before, link)
        return parts.sum(-2).to(x.dtype), (*filters.unbind(-2), *after.unbind(-1))

    def take_over(self, before: Any, shape: tuple[int, ...], old: State, new: State, rate: Any) -> Handover:
        """Return each band's gain unchanged, and its filter state if the new filter can continue from it."""
        moves, waiting, _ = kept(old, new, rate)
        if len(old) == len(new):
            was, own = (crossover(each.edges(), ORDER, rate) for each in (before, self))
            filters = [sections_handover(i, was[i], own[i], old[i], rate) for i in range(len(own))]
            moves = (*(move for move, _ in filters), *moves[len(own) :])
            waiting = max(waiting, *(longer for _, longer in filters))
        return Handover(moves, waiting)

    def native(self, program: Any, source: int, state: State, rate: Any) -> int | None:
        """Append each band's filter and gain, and their sum, if nothing is learned."""
        sos, settings = crossover(self.edges(), ORDER, rate), self.settings(rate, torch.device("cpu"))
        bands = len(sos)
        if settings.requires_grad or state[-1].shape != levels_shape(program.shape, self.link):
            return None
        signal, total = program.widen(source), None
        for i in range(bands):
            band = program.sos(signal, sos[i], state[i])
            band = program.dynamics(band, settings[..., i, :], state[bands + i])
            total = band if total is None else program.add(total, band)
        found: int = program.narrow(total)
        return found


class MultibandCompressor(BandDynamics):
    """Compress each band of a signal by its own level.

    The bands are split like `torchfx.filter.Crossover` of order 4, compressed like `torchfx.effect.Compressor`, and
    added. Without compression the result is the signal after an all-pass, flat in magnitude. Levels, ratio, times and
    knee have one value for all bands, or one value per band.

    Raises:
        ArgumentError: the number of values differs from the number of bands.

    Examples:
        >>> import torch
        >>> master = MultibandCompressor([200, 2000], threshold_db=[-24.0, -20.0, -18.0], fs=48_000)
        >>> master(torch.randn(2, 1000)).shape
        torch.Size([2, 1000])
    """

    cutoffs: float | Sequence[float] = frequencies(
        default=(200.0, 2000.0), drawn=2, doc="-6 dB frequencies between the bands, one less than bands"
    )
    threshold_db: Bands = per_band(
        decibels(low=-200.0, high=200.0, draws=(-40.0, -6.0), doc="level where compression begins"), default=-20.0
    )
    ratio: Bands = per_band(ratio(doc="dB of input per dB of output above the threshold"), default=4.0)
    attack_ms: Bands = per_band(milliseconds(draws=(0.1, 50.0), doc="time constant of a falling gain"), default=5.0)
    release_ms: Bands = per_band(milliseconds(draws=(10.0, 500.0), doc="time constant of a rising gain"), default=100.0)
    knee_db: Bands = per_band(
        number(low=0.0, high=200.0, unit="dB", draws=(0.0, 12.0), doc="width of the knee"), default=6.0
    )
    makeup_db: Bands = per_band(
        decibels(low=-200.0, high=200.0, draws=(0.0, 12.0), doc="gain applied after compression"), default=0.0
    )
    link: bool = flag(default=True, doc="applies the loudest channel's gain to all")
    fs: float | None = sample_rate(default=None)

    def check_parameters(self) -> None:
        """Raise if the numbers of values and bands differ."""
        bands = len(self.edges()) + 1
        for name in ("threshold_db", "ratio", "attack_ms", "release_ms", "knee_db", "makeup_db"):
            value: Any = getattr(self, name)
            count = value.shape[-1] if isinstance(value, Tensor) and value.dim() else None
            count = len(value) if isinstance(value, tuple) else count
            if count not in (None, 1, bands):
                raise ArgumentError(f"{name} must hold one value, or one for each of {bands} bands, got {count}")

    def output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the output's leading dimensions; the last one of a parameter's tensor counts bands."""
        own = {name: getattr(self, name) for name, declared in self.declarations.items() if declared.number is not None}
        tensors = {name: value.shape[:-1] for name, value in own.items() if isinstance(value, Tensor)}
        return broadcast_shapes(x=shape, **tensors)

    def edges(self) -> Any:
        """Return the cutoffs."""
        return self.cutoffs if isinstance(self.cutoffs, tuple) else (self.cutoffs,)

    def settings(self, rate: float, device: torch.device) -> Tensor:
        """Return each band's settings."""
        threshold, ratio, attack, release, knee, makeup = (
            settings_on(each, device)
            for each in (
                self.threshold_db, self.ratio, self.attack_ms, self.release_ms, self.knee_db, self.makeup_db
            )
        )  # fmt: skip
        curve = StaticCurve(threshold, above=1 / ratio - 1, knee_db=knee, makeup_db=makeup)
        found = gain_settings(curve, (release, attack), rate, device)
        return found.expand(*found.shape[:-2], len(self.edges()) + 1, found.shape[-1])


class DeEsser(BandDynamics):
    """Soften sibilants: compress the band above a frequency, and leave the band below unchanged.

    Examples:
        >>> import torch
        >>> DeEsser(fs=48_000)(torch.randn(2, 1000)).shape
        torch.Size([2, 1000])
    """

    threshold_db: Value = decibels(
        default=-30.0, low=-200.0, high=200.0, draws=(-40.0, -6.0), doc="level where compression begins"
    )
    cutoff: float = frequency(default=5000.0, doc="-6 dB frequency between the bands", learnable=False)
    ratio: Value = ratio(default=4.0, doc="dB of input per dB of output above the threshold")
    attack_ms: Value = milliseconds(default=1.0, draws=(0.1, 50.0), doc="time constant of a falling gain")
    release_ms: Value = milliseconds(default=50.0, draws=(10.0, 500.0), doc="time constant of a rising gain")
    link: bool = flag(default=True, doc="applies the loudest channel's gain to all")
    fs: float | None = sample_rate(default=None)

    def edges(self) -> Any:
        """Return the cutoff."""
        return (self.cutoff,)

    def settings(self, rate: float, device: torch.device) -> Tensor:
        """Return the settings of an unchanged band and of a compressed band."""
        times = (self.release_ms, self.attack_ms)
        alone = gain_settings(StaticCurve(self.threshold_db), times, rate, device)
        compressed = gain_settings(StaticCurve(self.threshold_db, above=1 / self.ratio - 1), times, rate, device)
        return torch.stack(torch.broadcast_tensors(alone, compressed), dim=-2)
