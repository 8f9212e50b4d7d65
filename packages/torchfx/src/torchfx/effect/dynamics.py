"""Compressor, expander and noise gate: gains that follow the level."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torchfx import _ops
from torchfx._ops.dynamics.composite import QUIETEST
from torchfx.core.processor import Processor
from torchfx.design.biquad import section
from torchfx.errors import ArgumentError
from torchfx.parameters import Value, choice, decibels, flag, milliseconds, number, processor, ratio, sample_rate
from torchfx.plan import Handover, State, kept, plan_of
from torchfx.plan.handover import sections_handover
from torchfx.plan.transition import steps_handover
from torchfx.rate import ambient_rate
from torchfx.tensors import check_signal, columns, latest, settings_on

__all__ = [
    "LINKED",
    "Compressor",
    "Expander",
    "NoiseGate",
    "StaticCurve",
    "channel_peak",
    "gain_settings",
    "levels_shape",
]

LOWEST = -1e4
"""The lowest gain in dB without a given limit: as a factor it is below the smallest double."""

MEAN, LATE, OWN = 2, 3, 4
"""The places of the mean square and the signal's delay in the state, and that of the side chain's first tensor."""

SILENCE_DB = 20 * math.log10(QUIETEST)
"""The lowest level."""

DETECTORS = ("peak", "rms")

LINKED = -2
"""The dimension of channels."""

STEEPEST = 1e6
"""The ratio of an expander that stands for infinity: 1 dB of attenuation 1e-6 dB below the threshold."""

SHORTEST_MS = 1e-4
"""Time constants below are this long: their gradient has a value at 0, and to a detector they are 0."""


class StaticCurve(NamedTuple):
    """Gain as a function of level, in dB, as `torchfx._ops.dynamics_forward` takes it: numbers, or tensors (...)."""

    threshold_db: Value
    above: Value = 0.0
    below: Value = 0.0
    knee_db: Value = 0.0
    lowest_db: Value = LOWEST
    makeup_db: Value = 0.0

    def of_squares(self) -> StaticCurve:
        """Return the curve that gives the same gain at the square of each level."""
        return self._replace(
            threshold_db=2 * self.threshold_db, above=self.above / 2, below=self.below / 2, knee_db=2 * self.knee_db
        )

    def silent_db(self) -> Value:
        """Return the gain in dB for silence (a level below the knee), without makeup."""
        below = self.threshold_db - SILENCE_DB
        asked = self.below * (below.clamp(min=0) if isinstance(below, Tensor) else max(below, 0.0))
        if isinstance(asked, Tensor) or isinstance(self.lowest_db, Tensor):
            return torch.maximum(*(torch.as_tensor(each, dtype=torch.float64) for each in (asked, self.lowest_db)))
        return max(asked, self.lowest_db)


class Dynamics(Processor):
    """Multiply a signal by a gain that follows its level, or the level of the side-chain signal.

    A static curve maps the level of each sample to a gain in dB, which attack and release smooth. A subclass declares
    the parameters named here and implements `curve` and `times`.

    The level is the magnitude of the sample, or with `detector="rms"` the root of the mean square m[t] = m[t-1] + c
    (x[t]^2 - m[t-1]), with the time constant `rms_ms`. With `lookahead_ms` the gain reacts this long before the sample:
    streams lag by the look-ahead, whole signals stay aligned.

    Source: D. Giannoulis, M. Massberg, J. D. Reiss, Digital Dynamic Range Compressor Design: A Tutorial and Analysis,
    J. Audio Eng. Soc. 60, 2012: feed-forward, with a smooth branching detector in the log domain.
    """

    @abstractmethod
    def curve(self) -> StaticCurve:
        """Return the static curve."""

    @abstractmethod
    def times(self) -> tuple[Value, Value]:
        """Return the time constants of a rising and of a falling gain, in ms."""

    def hold_samples(self, rate: Any) -> int:
        """Return the hold time of a level, in samples."""
        return 0

    def latency_samples(self, rate: Any) -> int:
        """Return the look-ahead, to the nearest sample."""
        samples: int = round(self.lookahead_ms * rate / 1000)
        return samples

    def unused(self) -> tuple[str, ...]:
        """Return `rms_ms`, unless the detector is "rms"."""
        return () if self.detector == "rms" else ("rms_ms",)

    def init_state(
        self, shape: tuple[int, ...], rate: Any, dtype: torch.dtype = torch.float32, device: Any = "cpu"
    ) -> State:
        """Return the state after a long silence.

        It consists of the gain for silence, past levels of 0, the mean square (only for `detector="rms"`), silence in
        the look-ahead delay, and the side chain at rest.
        """
        heard: Any = self.sidechain
        inner: State = ()
        late = torch.zeros(*shape, self.latency_samples(rate), dtype=dtype, device=device)
        if heard is not None:
            plan = plan_of(heard, rate)
            if plan.latency:
                raise ArgumentError(
                    f"sidechain must not lag behind its input, got {heard._get_name()} with {plan.latency} samples"
                )
            inner, shape = plan.init_state(shape, dtype, torch.device(device)), plan.leading(shape)
        curve, squares = self.curve(), torch.zeros(0, dtype=torch.float64, device=device)
        if self.detector == "rms":
            curve = curve.of_squares()
            if isinstance(self.rms_ms, Tensor):
                shape = torch.broadcast_shapes(shape, self.rms_ms.shape)
            squares = torch.zeros(1, *shape, 2, dtype=torch.float64, device=device)
        shape = levels_shape(shape, self.link)
        gain = settings_on(curve.silent_db(), torch.device(device))
        return (
            gain.expand(self.broadcast_shape(shape)).clone(),
            torch.zeros(*shape, self.hold_samples(rate), dtype=dtype, device=device),
            squares,
            late,
            *inner,
        )

    def step(self, x: Tensor, state: State, rate: Any) -> tuple[Tensor, State]:
        """Process the next block."""
        return self._step(x, None, state, rate)

    def native(self, program: Any, source: int, state: State, rate: Any) -> int | None:
        """Append side chain, hold and gain, if the side chain has native steps and nothing is learned."""
        settings, mean = self._settings(rate, torch.device("cpu"))
        smoothed, past, squares, late, *inner = state
        learned = settings.requires_grad or (mean is not None and mean.requires_grad)
        if learned or smoothed.shape != levels_shape(program.shape, self.link):
            return None
        heard: Any = self.sidechain
        key: int | None = source
        if heard is not None:
            key = plan_of(heard, rate).emit(program, source, tuple(inner))
            if key is None:
                return None
        if mean is not None:
            key = program.sos(program.curve(key, "square", torch.ones(1, dtype=torch.float64)), mean, squares)
        if late.shape[-1]:
            source = program.delay(source, late)
        if past.shape[-1] or (self.link and key != source):
            key = program.maximum(key, past)
        found: int = program.dynamics(source, settings, smoothed, key)
        return found

    def take_over(self, before: Any, shape: tuple[int, ...], old: State, new: State, rate: Any) -> Handover:
        """Return gain, past levels and past signal unchanged, and the side chain's state as its steps decide."""
        longer_delay = max(0, new[LATE].shape[-1] - old[LATE].shape[-1])  # it fills before it is audible
        own, heard = kept(old[:OWN], new[:OWN], rate, longer_delay), self.sidechain
        moves, waiting = own.moves, own.waiting
        (_, was), (_, mean) = (each._settings(rate, torch.device("cpu")) for each in (before, self))
        if was is not None and mean is not None:
            move, longer = sections_handover(MEAN, was, mean, old[MEAN], rate)
            moves, waiting = (*moves[:MEAN], move, *moves[MEAN + 1 :]), max(waiting, longer)
        if not isinstance(heard, Processor):
            return Handover(moves, waiting)
        steps = () if before.sidechain is None else plan_of(before.sidechain, rate).steps
        inner = steps_handover(steps, plan_of(heard, rate).steps, shape, old[OWN:], new[OWN:], rate)
        rest = (move if move is None else replace(move, source=move.source + OWN) for move in inner.moves)
        return Handover((*moves, *rest), max(waiting, inner.waiting))

    def keyed(self, x: Tensor, key: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """Process a signal with the level of another signal, for example to duck a bass under the kick drum.

        Args:
            x: float32 or float64, (..., time).
            key: the detector's input instead of x, (..., time); leading dimensions broadcast with x's.
            state: returned by the call for the previous block; None starts from rest.

        Returns:
            The output, shaped like x and delayed by the look-ahead, and the state for the next block.

        Raises:
            ArgumentError: the length, type or device of the key differs from x's.

        Examples:
            >>> import torch
            >>> duck = Compressor(threshold_db=-20.0, ratio=2.0, attack_ms=0.0, knee_db=0.0, fs=48_000)
            >>> y, _ = duck.keyed(torch.tensor([0.5, 0.5]), key=torch.tensor([0.01, 1.0]))
            >>> y  # 20 dB above the threshold become 10 dB
            tensor([0.5000, 0.1581])
        """
        x, key = check_signal(x, self._half), check_signal(key, self._half)
        if key.shape[-1] != x.shape[-1] or key.dtype != x.dtype or key.device != x.device:
            raise ArgumentError(
                f"key must hold {x.shape[-1]} samples of {x.dtype} on {x.device}, "
                f"got {key.shape[-1]} of {key.dtype} on {key.device}"
            )
        rate = self.rate_for(ambient_rate())
        if state is None:
            state = self.init_state(tuple(key.shape[:-1]), rate, key.dtype, key.device)
            late = x.new_zeros(*x.shape[:-1], self.latency_samples(rate))
            state = (*state[:LATE], late, *state[LATE + 1 :])
        return self._step(x, key, state, rate)

    def _step(self, x: Tensor, key: Tensor | None, state: State, rate: Any) -> tuple[Tensor, State]:
        before, past, squares, late, *rest = state
        settings, mean = self._settings(rate, x.device)
        heard: Any = self.sidechain
        inner: State = tuple(rest)
        if heard is not None:
            key, inner = plan_of(heard, rate).step(x if key is None else key, inner)
        if mean is not None:
            key, squares = _ops.parallel_iir_forward((x if key is None else key).square(), mean, squares)
        if late.shape[-1]:
            key = x if key is None else key
            x, late = torch.cat([late, x], dim=-1)[..., : x.shape[-1]], latest(late, x)
        if past.shape[-1]:
            key = x if key is None else key
            key = channel_peak(key) if self.link else key
            levels, time = torch.cat([past, key.abs()], dim=-1), x.shape[-1]
            key, past = _ops.sliding_max(levels, past.shape[-1] + 1), levels[..., time:].clone()
        y, after = _ops.dynamics_forward(x, key, settings, before, LINKED if self.link else None)
        return y, (after, past, squares, late, *inner)

    def _settings(self, rate: Any, device: torch.device) -> tuple[Tensor, Tensor | None]:
        """Return the settings of the gain, and the section that averages squares, None for peaks."""
        curve = self.curve()
        if self.detector == "peak":
            return gain_settings(curve, self.times(), rate, device), None
        rms_ms: Any = self.rms_ms
        part = smoothing(rms_ms, rate)
        mean = settings_on(section((part, 0.0, 0.0, 1.0, part - 1, 0.0)), device)
        return gain_settings(curve.of_squares(), self.times(), rate, device), mean


class Compressor(Dynamics):
    """Compress the dynamic range: an input `ratio` dB above the threshold gives an output 1 dB above it.

    With o = level - threshold_db, the gain is (1 / ratio - 1) k(o) dB: k(o) = o above the knee, 0 below it, and (o +
    knee_db / 2)^2 / (2 knee_db) inside. After a change of the level, 63 % of the gain change in dB is reached after
    `attack_ms` if the gain falls, and after `release_ms` if it rises. Use `Mix` for parallel compression.

    Source: D. Giannoulis, M. Massberg, J. D. Reiss, Digital Dynamic Range Compressor Design: A Tutorial and Analysis,
    J. Audio Eng. Soc. 60, 2012: feed-forward, with a smooth branching detector in the log domain.

    Examples:
        >>> import torch
        >>> Compressor(-20.0, ratio=2.0, attack_ms=0.0, knee_db=0.0, fs=48_000)(torch.tensor([0.1, 1.0]))
        tensor([0.1000, 0.3162])

        A side-chain filter keeps bass from triggering the compressor:

        >>> from torchfx.filter import HiButterworth
        >>> Compressor(-20.0, sidechain=HiButterworth(150), fs=48_000)(torch.randn(2, 1000)).shape
        torch.Size([2, 1000])
    """

    threshold_db: Value = decibels(
        default=-20.0, low=-200.0, high=200.0, draws=(-40.0, -6.0), doc="level where compression begins"
    )
    ratio: Value = ratio(
        default=4.0, doc="dB of input per dB of output above the threshold; inf: levels out at the threshold"
    )
    attack_ms: Value = milliseconds(default=5.0, draws=(0.1, 50.0), doc="time constant of a falling gain")
    release_ms: Value = milliseconds(default=100.0, draws=(10.0, 500.0), doc="time constant of a rising gain")
    knee_db: Value = number(default=6.0, low=0.0, high=200.0, unit="dB", draws=(0.0, 12.0), doc="width of the knee")
    makeup_db: Value = decibels(
        default=0.0, low=-200.0, high=200.0, draws=(0.0, 12.0), doc="gain applied after compression"
    )
    link: bool = flag(default=True, doc="applies the loudest channel's gain to all")
    sidechain: Processor | None = processor(default=None, doc="filters the detector's input")
    detector: str = choice(DETECTORS, default="peak", doc="measures peaks or the root mean square")
    rms_ms: Value = milliseconds(default=10.0, high=10_000.0, draws=(1.0, 50.0), doc="time constant of the mean square")
    lookahead_ms: float = milliseconds(
        default=0.0, high=1000.0, draws=(0.05, 0.5), doc="look-ahead of the detector", learnable=False
    )
    fs: float | None = sample_rate(default=None)

    def curve(self) -> StaticCurve:
        """Return the static curve."""
        return StaticCurve(self.threshold_db, above=1 / self.ratio - 1, knee_db=self.knee_db, makeup_db=self.makeup_db)

    def times(self) -> tuple[Value, Value]:
        """Return release and attack."""
        return self.release_ms, self.attack_ms


class Expander(Dynamics):
    """Downward expander: an input 1 dB below the threshold gives an output `ratio` dB below it.

    With o = threshold_db - level, the gain is (1 - ratio) k(o) dB, with the knee k of `Compressor`, but not below
    -range_db. After a change of the level, 63 % of the gain change in dB is reached after `attack_ms` if the gain
    rises, and after `release_ms` if it falls. The initial gain is the gain for silence.

    Examples:
        >>> import torch
        >>> Expander(-20.0, ratio=2.0, attack_ms=0.0, release_ms=0.0, knee_db=0.0, fs=48_000)(torch.tensor([0.5, 0.01]))
        tensor([0.5000, 0.0010])
    """

    threshold_db: Value = decibels(
        default=-40.0, low=-200.0, high=200.0, draws=(-40.0, -6.0), doc="level below which it acts"
    )
    ratio: Value = ratio(default=2.0, draws=(1.0, 10.0), doc="dB of output per dB of input below the threshold")
    attack_ms: Value = milliseconds(default=1.0, draws=(0.1, 50.0), doc="time constant of a rising gain")
    release_ms: Value = milliseconds(default=100.0, draws=(10.0, 500.0), doc="time constant of a falling gain")
    knee_db: Value = number(default=6.0, low=0.0, high=200.0, unit="dB", draws=(0.0, 12.0), doc="width of the knee")
    range_db: Value = number(default=40.0, low=0.0, high=200.0, unit="dB", draws=(6.0, 80.0), doc="largest attenuation")
    link: bool = flag(default=True, doc="applies the loudest channel's gain to all")
    sidechain: Processor | None = processor(default=None, doc="filters the detector's input")
    detector: str = choice(DETECTORS, default="peak", doc="measures peaks or the root mean square")
    rms_ms: Value = milliseconds(default=10.0, high=10_000.0, draws=(1.0, 50.0), doc="time constant of the mean square")
    lookahead_ms: float = milliseconds(
        default=0.0, high=1000.0, draws=(0.05, 0.5), doc="look-ahead of the detector", learnable=False
    )
    fs: float | None = sample_rate(default=None)

    def curve(self) -> StaticCurve:
        """Return the static curve."""
        steepness = self.ratio.clamp(max=STEEPEST) if isinstance(self.ratio, Tensor) else min(self.ratio, STEEPEST)
        return StaticCurve(self.threshold_db, below=1 - steepness, knee_db=self.knee_db, lowest_db=-self.range_db)

    def times(self) -> tuple[Value, Value]:
        """Return attack and release."""
        return self.attack_ms, self.release_ms


class NoiseGate(Expander):
    """Noise gate: an expander that stays open for a hold time after the last loud sample.

    The level is held for `hold_ms`, so that tones do not close the gate at each zero crossing. The gate is closed at
    the beginning of a signal.

    Examples:
        >>> import torch
        >>> gate = NoiseGate(-40.0, ratio=100.0, attack_ms=0.0, release_ms=0.0, hold_ms=0.05, range_db=100.0, fs=48_000)
        >>> gate(torch.tensor([0.001, 0.5, 0.001, 0.001, 0.001]))
        tensor([1.0000e-08, 5.0000e-01, 1.0000e-03, 1.0000e-03, 1.0000e-08])
    """

    ratio: Value = ratio(
        default=10.0, draws=(1.0, 10.0), doc="dB of output per dB of input below the threshold; inf: a gate"
    )
    knee_db: Value = number(default=0.0, low=0.0, high=200.0, unit="dB", draws=(0.0, 12.0), doc="width of the knee")
    range_db: Value = number(default=80.0, low=0.0, high=200.0, unit="dB", draws=(6.0, 80.0), doc="largest attenuation")
    hold_ms: float = milliseconds(
        default=10.0,
        high=10_000.0,
        draws=(0.01, 1.0),
        doc="how long the gate stays open after the level falls",
        learnable=False,
    )

    def hold_samples(self, rate: Any) -> int:
        """Return the hold time, rounded to samples."""
        samples: int = round(self.hold_ms * rate / 1000)
        return samples


def channel_peak(x: Tensor) -> Tensor:
    """Return the largest magnitude over the channels: (..., channels, time) becomes (..., 1, time); (time,) is one
    channel.
    """
    return x if x.dim() < 2 or x.shape[-2] <= 1 else x.abs().amax(-2, keepdim=True)


def levels_shape(shape: tuple[int, ...], link: Any) -> tuple[int, ...]:
    """Return the leading dimensions of a signal's levels; linked channels share one level."""
    return (*shape[:-1], min(1, shape[-1])) if link and shape else shape


def smoothing(time_ms: Value, rate: float) -> Value:
    """Return the coefficient c of y[t] = y[t-1] + c (x[t] - y[t-1]) for a time constant: 1 - exp(-1 / (rate time))."""
    if isinstance(time_ms, Tensor):
        return -torch.expm1(-1000 / (time_ms.double().clamp(min=SHORTEST_MS) * rate))
    return -math.expm1(-1000 / (max(time_ms, SHORTEST_MS) * rate))


def gain_settings(curve: StaticCurve, times_ms: tuple[Value, Value], rate: float, device: torch.device) -> Tensor:
    """Return the settings for `torchfx._ops.dynamics_forward`, (..., 8), for a curve and the times of rise and fall."""
    return columns((*curve, *(smoothing(each, rate) for each in times_ms)), device)
