"""Memoryless nonlinearities: each output sample depends on one input sample."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torchfx import _ops
from torchfx._ops.program import Oversampling
from torchfx.core.processor import Processor
from torchfx.design.resampling import resampling_reach, resampling_taps
from torchfx.errors import ArgumentError
from torchfx.parameters import Value, choice, count, curve, decibels
from torchfx.plan import Handover, State, kept
from torchfx.tensors import settings_on

__all__ = ["BitCrush", "Distortion", "HardClip", "Overdrive", "SoftClip", "WaveShaper", "Waveshaping"]


class Waveshaping(Processor):
    """Apply a curve to each sample, optionally oversampled.

    A nonlinear curve creates harmonics, and harmonics above half the sample rate alias. `oversample` applies the curve
    at a multiple of the rate and removes these harmonics with the low-pass of `Resample`. Oversampling adds 190 samples
    of latency in streams; whole signals stay aligned.

    A subclass implements `curve`.
    """

    @abstractmethod
    def curve(self, x: Tensor) -> Tensor:
        """Return the output for each sample."""

    @property
    def _times(self) -> int:
        """How many times the rate is: `oversample`, which subclasses declare after their own parameters."""
        found: Any = self.oversample
        times: int = found
        return times

    @property
    def _wait(self) -> int:
        """How long each of both low-passes waits for what its output depends on, in samples."""
        return -(-resampling_reach(self._times, 1, "HQ") // self._times)

    def latency_samples(self, rate: Any) -> int:
        """Return twice the reach of the low-pass, or 0 without oversampling."""
        return 0 if self._times == 1 else 2 * self._wait

    def init_state(
        self, shape: tuple[int, ...], rate: Any, dtype: torch.dtype = torch.float32, device: Any = "cpu"
    ) -> State:
        """Return silence for past input, and for past output at the higher rate."""
        if self._times == 1:
            return ()
        past, shape = 2 * self._wait, self.output_shape(shape)
        return tuple(torch.zeros(*shape, past * up, dtype=dtype, device=device) for up in (1, self._times))

    def step(self, x: Tensor, state: State, rate: Any) -> tuple[Tensor, State]:
        """Shape the next block."""
        up, time = self._times, x.shape[-1]
        if up == 1:
            return self.curve(x), state
        x = x.expand(*state[0].shape[:-1], time)
        reach, late = resampling_reach(up, 1, "HQ"), self._wait * up
        heard = torch.cat([state[0], x], dim=-1)
        # Both begin `late` after the block: at the higher rate that is a whole number of input samples.
        finer = _ops.resample_forward(heard, _taps(up, 1, x), 1, reach + late, time * up)
        shaped = torch.cat([state[1], self.curve(finer)], dim=-1)
        y = _ops.resample_forward(shaped, _taps(1, up, x), up, reach + late, time)
        return y, (heard[..., time:], shaped[..., time * up :])

    def take_over(self, before: Any, shape: tuple[int, ...], old: State, new: State, rate: Any) -> Handover:
        """Return past input, and silence for past output, which came from another curve."""
        handover = kept(old, new, rate, self.latency_samples(rate))
        return handover._replace(moves=(*handover.moves[:1], None)) if new else handover


CURVES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "clip": lambda x, threshold: torch.minimum(torch.maximum(x, -threshold), threshold),
    "tanh": lambda x, drive: torch.tanh(x * drive),
    "cubic": lambda x, drive: _cubic((x * drive).clamp(-1, 1)),
    "arctan": lambda x, drive: torch.atan(x * drive) * (2 / torch.pi),
    "overdrive": lambda x, drive: _overdriven(x * drive),
    "round": lambda x, steps: torch.round(x * steps) / steps,
    "table": lambda x, table: _interpolated(x, table),
}
"""Functions of samples (..., time) and parameters (..., 1) or a table (n,), by the names that native programs know."""

Named = tuple[str, Tensor]
"""One of `CURVES`, and its parameters in float64."""


class NamedCurve(Waveshaping):
    """Apply one of `CURVES`; native in streams if nothing is learned."""

    @abstractmethod
    def named_curve(self, device: torch.device) -> Named | Callable[[Tensor], Tensor]:
        """Return the curve's name and parameters, or a function without a name."""

    def curve(self, x: Tensor) -> Tensor:
        """Return the curve's value."""
        found = self.named_curve(x.device)
        if not isinstance(found, tuple):
            return found(x)
        name, parameters = found
        # A drive beyond the type's range would be infinite, and a NaN times silence.
        return CURVES[name](x, parameters.clamp(max=torch.finfo(x.dtype).max).to(x.dtype))

    def native(self, program: Any, source: int, state: State, rate: Any) -> int | None:
        """Append the curve, with its low-passes if it is oversampled."""
        found = self.named_curve(torch.device("cpu"))
        overridden = type(self).curve is not NamedCurve.curve
        if overridden or not isinstance(found, tuple) or self.output_shape(program.shape) != program.shape:
            return None
        name, parameters = found
        if parameters.requires_grad:
            return None
        higher, up = None, self._times
        if up > 1:
            there, back = resampling_taps(up, 1, "HQ"), resampling_taps(1, up, "HQ")
            higher = Oversampling(there, back, resampling_reach(up, 1, "HQ"), *state)
        target: int = program.curve(source, name, parameters, higher)
        return target


class HardClip(NamedCurve):
    """Clip samples at a threshold: y = min(max(x, -threshold), threshold).

    Examples:
        >>> import torch
        >>> HardClip(-6.020599913279624)(torch.tensor([0.25, 0.75, -2.0]))
        tensor([ 0.2500,  0.5000, -0.5000])
    """

    threshold_db: Value = decibels(default=-6.0, doc="the largest magnitude that passes")
    oversample: int = count(default=1, high=16, draws=(1, 2), doc="oversampling factor of the clipping")

    def named_curve(self, device: torch.device) -> Named:
        """Return the limit."""
        return "clip", _factor(self.threshold_db, device)


class SoftClip(NamedCurve):
    """Soft clipping: multiply by the drive g, then apply a curve with limits -1 and 1.

    The curves are tanh(g x), (3 g x - (g x)^3) / 2 up to full scale (`cubic`), and 2/pi arctan(g x).

    Examples:
        >>> import torch
        >>> SoftClip("cubic", 0.0)(torch.tensor([0.5, 1.0, -3.0]))
        tensor([ 0.6875,  1.0000, -1.0000])
    """

    shape: str = choice(("tanh", "cubic", "arctan"), default="tanh", doc="the curve")
    drive_db: Value = decibels(default=0.0, draws=(-12.0, 12.0), doc="gain applied before the curve")
    oversample: int = count(default=1, high=16, draws=(1, 2), doc="oversampling factor of the clipping")

    def named_curve(self, device: torch.device) -> Named:
        """Return the curve and its drive."""
        return self.shape, _factor(self.drive_db, device)


class Distortion(NamedCurve):
    """Distort a signal by y = tanh(g x), with g = 10^(drive_db / 20).

    Examples:
        >>> import torch
        >>> Distortion(20.0)(torch.tensor([0.01, 0.5]))
        tensor([0.0997, 0.9999])
    """

    drive_db: Value = decibels(default=25.0, draws=(0.0, 30.0), doc="gain applied before the curve")
    oversample: int = count(default=1, high=16, draws=(1, 2), doc="oversampling factor of the distortion")

    def named_curve(self, device: torch.device) -> Named:
        """Return the curve and its drive."""
        return "tanh", _factor(self.drive_db, device)


class Overdrive(NamedCurve):
    """Tube-like distortion: linear at low levels, then soft, then clipped.

    With u = g |x|: y = 2 u up to 1/3, (3 - (2 - 3 u)^2) / 3 up to 2/3, and 1 above, with the sign of x.

    Source: U. Zoelzer (ed.), DAFX, 2nd edition, 2011, section 4.3.3.

    Examples:
        >>> import torch
        >>> Overdrive(0.0)(torch.tensor([0.25, -0.5, 1.0]))
        tensor([ 0.5000, -0.9167,  1.0000])
    """

    drive_db: Value = decibels(default=12.0, draws=(-12.0, 12.0), doc="gain applied before the curve")
    oversample: int = count(default=1, high=16, draws=(1, 2), doc="oversampling factor of the distortion")

    def named_curve(self, device: torch.device) -> Named:
        """Return the curve and its drive."""
        return "overdrive", _factor(self.drive_db, device)


class BitCrush(NamedCurve):
    """Quantize samples to a number of bits: y = round(x 2^(bits - 1)) / 2^(bits - 1).

    With 16 bits, the steps equal those of 16-bit audio. Samples beyond full scale are not clipped. The gradient is 0.

    Examples:
        >>> import torch
        >>> BitCrush(3)(torch.tensor([0.1, 0.2, -0.9]))
        tensor([ 0.0000,  0.2500, -1.0000])
    """

    bits: int = count(default=8, low=1, high=32, draws=(2, 8), doc="bits per sample, including the sign")
    oversample: int = count(default=1, high=16, draws=(1, 1), doc="oversampling factor of the rounding")

    def named_curve(self, device: torch.device) -> Named:
        """Return the quantiser and its steps up to full scale."""
        return "round", settings_on([2.0 ** (self.bits - 1)], device)


class WaveShaper(NamedCurve):
    """Apply a given curve to each sample: a table or a function.

    A table holds the outputs for inputs evenly spaced from -1 to 1, with linear interpolation between them; inputs
    beyond this range get the first or last value, as in the Web Audio API's WaveShaperNode. A function maps a tensor to
    a tensor of the same shape, sample by sample.

    Examples:
        >>> import torch
        >>> WaveShaper([-1.0, 0.0, 0.5])(torch.tensor([-2.0, -0.5, 0.5]))
        tensor([-1.0000, -0.5000,  0.2500])
        >>> WaveShaper(torch.abs)(torch.tensor([-0.5, 0.5]))
        tensor([0.5000, 0.5000])
    """

    table: Tensor | Callable[[Tensor], Tensor] = curve(doc="the curve")
    oversample: int = count(default=1, high=16, draws=(1, 2), doc="oversampling factor of the curve")

    def check_parameters(self) -> None:
        """Raise if the table is invalid."""
        if isinstance(self.table, Tensor) and (self.table.dim() != 1 or len(self.table) < 2):
            raise ArgumentError(f"table must have the shape (n >= 2,), got {tuple(self.table.shape)}")

    def named_curve(self, device: torch.device) -> Named | Callable[[Tensor], Tensor]:
        """Return the table or the function."""
        return ("table", settings_on(self.table, device)) if isinstance(self.table, Tensor) else self.table


def _cubic(x: Tensor) -> Tensor:
    """Return the cubic of samples within [-1, 1]."""
    return 1.5 * x - 0.5 * x**3


def _overdriven(x: Tensor) -> Tensor:
    """Return what `Overdrive` makes of samples multiplied by the drive."""
    size = x.abs()
    soft = (3 - (2 - 3 * size.clamp(max=2 / 3)) ** 2) / 3
    return torch.where(size < 1 / 3, 2 * x, soft.copysign(x))


def _interpolated(x: Tensor, table: Tensor) -> Tensor:
    """Return the line between a table's entries."""
    last = len(table) - 1
    place = (x.double().clamp(-1, 1) + 1) * (last / 2)  # in float32 it would lie off by part of a step
    left = place.detach().nan_to_num().floor().clamp(0, last - 1).long()
    low, high = table[left], table[left + 1]
    return (low + (place - left) * (high - low)).to(x.dtype)


def _factor(db: Value, device: torch.device) -> Tensor:
    """Return a gain in decibels as a factor (..., 1), to be multiplied with (..., time)."""
    if not isinstance(db, Tensor):
        return settings_on([10 ** (db / 20)], device)
    # A power's derivative, 10^t ln(10), would be infinite at the largest drive, and NaN times a gradient of 0.
    return torch.exp(settings_on(db, device) * (math.log(10) / 20))[..., None]


def _taps(up: int, down: int, x: Tensor) -> Tensor:
    return settings_on(resampling_taps(up, down, "HQ"), x.device)
