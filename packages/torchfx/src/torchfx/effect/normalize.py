"""Normalisation by peak, RMS, a percentile, loudness, or a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast

import torch
from torch import Tensor

from torchfx import loudness
from torchfx.core.processor import Processor
from torchfx.errors import ArgumentError
from torchfx.parameters import Value, choice, flag, level, number, sample_rate
from torchfx.plan import State
from torchfx.tensors import is_readable, settings_on

__all__ = ["Normalize"]

R128 = -23.0  # LUFS, the target level of EBU R 128

PERCENTILE = 99.0

BINS = 1 << 16
"""Bins of the magnitudes' histogram: one for each value of a float32's first 16 bits after the sign."""


class Normalize(Processor):
    """Scale a signal to a target level: by default, to the largest magnitude `peak`.

    `method` selects the level: "peak", "rms", "percentile" (the magnitude that `percentile` percent of the samples do
    not exceed, to 0.03 dB) or "lufs" (the integrated loudness of ITU-R BS.1770-5 for signals of at least 0.4 s, see
    `torchfx.loudness.integrated`). It can also be a function that takes a signal (..., channels, time) and returns its
    level (...); files must then fit into one block. The target is `peak`, or `lufs` for the loudness; peaks may then
    exceed 1.

    All channels get the same factor, which keeps the stereo image, unless `link` is false. Each item of a batch (...,
    channels, time) has its own factor. Silence stays silent. NaN or infinite samples raise an error.

    Examples:
        >>> import torch
        >>> Normalize(peak=0.5)(torch.tensor([[1.0, -4.0], [0.0, 2.0]]))
        tensor([[ 0.1250, -0.5000], [ 0.0000, 0.2500]])
        >>> Normalize(peak=0.5, link=False)(torch.tensor([[1.0, -4.0], [0.0, 2.0]]))
        tensor([[ 0.1250, -0.5000], [ 0.0000, 0.5000]])
        >>> Normalize("-6dB", method="rms")
        Normalize(peak=-6 dB, method='rms')
        >>> Normalize(1.0, method=lambda x: x.abs().mean((-2, -1)))(torch.tensor([[1.0, -4.0], [0.0, 3.0]]))
        tensor([[ 0.5000, -2.0000], [ 0.0000, 1.5000]])
        >>> import torchfx as fx
        >>> y = fx.Wave(torch.randn(2, 48_000), 48_000) | Normalize(method="lufs", lufs=-14)
        >>> print(f"{fx.loudness.integrated(y):.2f} LUFS")
        -14.00 LUFS
    """

    peak: Value | str = level(default=1.0, low=0.0, open_low=True, doc="level of the result")
    method: str | Callable[[Tensor], Tensor] = choice(
        ("peak", "rms", "percentile", "lufs"),
        default="peak",
        draws=("peak", "rms", "percentile"),
        doc="kind of level that is normalized",
        functions=True,
    )
    lufs: Value | None = number(default=None, low=-70.0, high=0.0, unit="LUFS", doc='loudness for method="lufs"')
    percentile: float | None = number(
        default=None, low=0.0, high=100.0, unit="%", learnable=False, doc='of the samples, for method="percentile"'
    )
    link: bool = flag(default=True, doc="whether all channels get the same factor")
    fs: float | None = sample_rate(default=None)

    def check_parameters(self) -> None:
        """Raise if a loudness or a percentile is given for another method."""
        for name in ("lufs", "percentile"):
            if getattr(self, name) is not None and self.method != name:
                raise ArgumentError(f'{name} needs method="{name}", got method={self.method!r}')

    def rate_for(self, rate: float | None) -> float | None:
        """Return the rate (Hz) to work at; only the loudness needs a rate."""
        return super().rate_for(rate) if self.method == "lufs" else rate

    def init_state(
        self, shape: tuple[int, ...], rate: Any, dtype: torch.dtype = torch.float32, device: Any = "cpu"
    ) -> State:
        """Return the empty measurement."""
        return self._meter().rest(self._heard_shape(shape or (1,)), dtype, device)

    def measure(self, x: Tensor, state: State, rate: Any) -> State:
        """Return the measurement updated with a block."""
        if 0 in x.shape[-2:]:
            return state
        x = x if x.dim() > 1 else x[None]
        after = self._meter().add(x if self.link else x[..., None, :], state, rate)
        if x.is_cpu and is_readable(after[0]) and not bool(torch.isfinite(after[0]).all()):
            count = int((~torch.isfinite(x)).sum())
            raise ArgumentError(f"x must be finite to be normalised, got {count} NaN or infinite samples")
        return after

    def step(self, x: Tensor, state: State, rate: Any) -> tuple[Tensor, State]:
        """Scale by the measured factor."""
        measured = self._meter().level(state)
        measured = (measured[..., None] if self.link else measured).double()
        if self.method == "lufs":
            wanted = 10 ** (settings_on(R128 if self.lufs is None else self.lufs, x.device) / 20)
        else:
            wanted = settings_on(cast(Value, self.peak), x.device)
        measured = torch.where(measured > 0, measured, 1.0)
        if x.dim() > 1:
            measured, wanted = measured[..., None], wanted[..., None]
        factor = wanted / measured
        if x.is_cpu and is_readable(factor):  # reading it elsewhere would wait for the device
            for dtype in (x.dtype, torch.float64):  # of very quiet or loud samples float32 does not hold the factor
                limits = torch.finfo(dtype)
                if bool(((factor > limits.tiny) & (factor < limits.max)).all()):
                    return (x.to(dtype) * factor.to(dtype)).to(x.dtype), state
        return (x.double() / measured * wanted).to(x.dtype), state

    def _meter(self) -> Meter:
        if not isinstance(self.method, str):
            return Function(self.method)
        if self.method == "percentile":
            return Percentile(PERCENTILE if self.percentile is None else self.percentile)
        return METERS[self.method]

    def _heard_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the leading dimensions of the meter's input: without `link`, each channel separately."""
        return shape if self.link else (*shape, 1)


class Meter(Protocol):
    """Measures the level (...) of a signal (..., channels, time) block by block.

    The first tensor of its state is infinite or NaN if a sample was.
    """

    def rest(self, shape: tuple[int, ...], dtype: torch.dtype, device: Any) -> State:
        """Return the state before a signal with the leading dimensions (..., channels)."""

    def add(self, x: Tensor, state: State, rate: Any) -> State:
        """Return the state after a block."""

    def level(self, state: State) -> Tensor:
        """Return the level."""


class Peak:
    """The largest magnitude."""

    def rest(self, shape: tuple[int, ...], dtype: torch.dtype, device: Any) -> State:
        """Return zeros."""
        return (torch.zeros(shape[:-1], dtype=dtype, device=device),)

    def add(self, x: Tensor, state: State, rate: Any) -> State:
        """Return the larger magnitude."""
        return (torch.maximum(torch.maximum(x.amax((-2, -1)), -x.amin((-2, -1))), state[0]),)

    def level(self, state: State) -> Tensor:
        """Return the level."""
        return state[0]


class RootMeanSquare:
    """The root of the mean square."""

    def rest(self, shape: tuple[int, ...], dtype: torch.dtype, device: Any) -> State:
        """Return zero energy and zero samples."""
        energy = torch.zeros(shape[:-1], dtype=torch.float64, device=device)
        return energy, torch.zeros((), dtype=torch.float64, device=device)

    def add(self, x: Tensor, state: State, rate: Any) -> State:
        """Return the energy and the number of samples so far."""
        return state[0] + x.double().square().sum((-2, -1)), state[1] + x.shape[-2] * x.shape[-1]

    def level(self, state: State) -> Tensor:
        """Return the root mean square; at 0 its gradient is 0."""
        square = state[0] / state[1].clamp(min=1)
        return torch.where(square > 0, torch.where(square > 0, square, 1.0).sqrt(), 0.0)


class Percentile:
    """A percentile of the magnitudes: the mean of the magnitudes in its bin.

    A histogram with bins 0.4 % wide keeps memory constant for any signal length.
    """

    def __init__(self, percent: float) -> None:
        self.percent = percent

    def rest(self, shape: tuple[int, ...], dtype: torch.dtype, device: Any) -> State:
        """Return empty bins: sums, and numbers of samples."""
        return tuple(torch.zeros(*shape[:-1], BINS, dtype=each, device=device) for each in (torch.float64, torch.int64))

    def add(self, x: Tensor, state: State, rate: Any) -> State:
        """Put a block's magnitudes into their bins."""
        magnitudes = x.flatten(-2).abs()
        bins = (magnitudes.detach().float().view(torch.int32) >> 15).long()
        sums, counts = state
        return (
            sums.scatter_add(-1, bins, magnitudes.double()),
            counts.scatter_add(-1, bins, torch.ones_like(bins)),
        )

    def level(self, state: State) -> Tensor:
        """Return the mean of the bin in which the percentile lies."""
        sums, counts = state
        below = counts.cumsum(-1)
        rank = self.percent / 100 * (below[..., -1:] - 1).clamp(min=0)
        found = (below > rank).int().argmax(-1, keepdim=True)
        return (sums.gather(-1, found) / counts.gather(-1, found).clamp(min=1)).squeeze(-1)


class Loudness:
    """The integrated loudness, as a factor instead of LUFS."""

    def rest(self, shape: tuple[int, ...], dtype: torch.dtype, device: Any) -> State:
        """Return no powers, the weighting filter at rest, and no pending samples."""
        powers = torch.zeros(*shape[:-1], 0, dtype=torch.float64, device=device)
        return (powers, *loudness.rest(shape, dtype, device))

    def add(self, x: Tensor, state: State, rate: Any) -> State:
        """Return the powers of all gating steps so far."""
        powers, after = loudness.step_powers(x, rate, loudness.checked_weights(x.shape[-2]), state[1:])
        return (torch.cat([state[0], powers], dim=-1), *after)

    def level(self, state: State) -> Tensor:
        """Return the gated loudness as a factor."""
        found: Tensor = 10 ** (loudness.gated_loudness(state[0]) / 20)
        return found


class Function:
    """The return value of a function for the whole signal."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        self.function = function

    def rest(self, shape: tuple[int, ...], dtype: torch.dtype, device: Any) -> State:
        """Return no level."""
        return (torch.zeros(*shape[:-1], 0, dtype=torch.float64, device=device),)

    def add(self, x: Tensor, state: State, rate: Any) -> State:
        """Return the level, or raise if the signal has more than one block."""
        name = getattr(self.function, "__name__", "a function")
        if state[0].shape[-1]:
            raise ArgumentError(f"method={name} must get the whole signal in one block: load the file as a Wave")
        found = torch.as_tensor(self.function(x), dtype=torch.float64, device=x.device)
        if found.shape != x.shape[:-2]:
            raise ArgumentError(
                f"method={name} must return a level for each signal, shape {tuple(x.shape[:-2])}, "
                f"got {tuple(found.shape)}"
            )
        return (found[..., None],)

    def level(self, state: State) -> Tensor:
        """Return the level."""
        return state[0][..., 0]


METERS: dict[str, Meter] = {"peak": Peak(), "rms": RootMeanSquare(), "lufs": Loudness()}
