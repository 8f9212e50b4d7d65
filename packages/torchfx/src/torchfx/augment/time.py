"""Augmentations along time: crops, shifts, masks, and changes of speed."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from torchfx._ops.operator import is_direct
from torchfx.augment.augmentation import Augmentation, Distribution, Drawn, extremes_of, values_of
from torchfx.checks import finite_number, number_text
from torchfx.core.processor import Processor
from torchfx.effect.pitch import TimeStretch as Stretching
from torchfx.effect.pitch import Varispeed as Playing
from torchfx.errors import ArgumentError
from torchfx.functional.stretching import stretched
from torchfx.parameters import choice as choice_of
from torchfx.parameters import named, number
from torchfx.parameters import sample_rate as sample_rate_of
from torchfx.rate import ambient_rate, resolve_rate

__all__ = ["Crop", "Shift", "TimeMask", "TimeStretch", "Varispeed", "rate_of"]

PLACE = named("place", choice_of(("random", "start", "centre")))
FS = named("fs", sample_rate_of(default=None))
SHARE = named("share", number(low=0.0, high=1.0, learnable=False))
RATE_STEPS = 200
"""`Varispeed` rounds rates to 1/200: each rate has its own low-pass, which takes a millisecond to design."""


class Crop(Augmentation):
    """Crop or pad every example to a duration, at a random place. It applies to all examples, so there is no `p`.

    Args:
        duration: duration of the result, seconds.
        place: "random" (uniformly distributed), "start" or "centre": the position of the crop, or of a shorter signal
            in silence.
        fs: sample rate, Hz; None uses the wave's rate or `torchfx.sample_rate`.
        generator: as in `Augmentation`.

    Raises:
        ArgumentError: an argument is out of range. SampleRateError, when it runs: the rate is unknown.

    Examples:
        >>> Crop(0.5, fs=16_000)(torch.randn(4, 1, 16_000)).shape
        torch.Size([4, 1, 8000])
        >>> Crop(3.0, "centre", fs=2)(torch.ones(1, 2))
        tensor([[0., 0., 1., 1., 0., 0.]])
    """

    def __init__(
        self,
        duration: float,
        place: str = "random",
        *,
        fs: float | None = None,
        generator: torch.Generator | int | None = None,
    ) -> None:
        """Check the arguments."""
        super().__init__(1.0, generator)
        self.duration = finite_number("duration", duration, "s")
        if self.duration <= 0:
            raise ArgumentError(f"duration must lie in (0, inf) s, got {number_text(self.duration)} s")
        self.place: str = PLACE.check(place, None)
        self.fs: float | None = FS.check(fs, None)

    def _draw(self, among: Tensor, around: torch.Generator | None) -> Drawn:
        share = torch.full((len(among),), {"start": 0.0, "centre": 0.5, "random": 0.0}[self.place], dtype=torch.float64)
        if self.place == "random":
            share = torch.rand(len(among), generator=self._generator(around), dtype=torch.float64)
        return {"applied": torch.ones_like(among), "share": share}

    def _run(self, x: Tensor, drawn: Drawn) -> Tensor:
        length = max(1, round(self.duration * rate_of(self)))
        spare = x.shape[-1] - length
        first = (drawn["share"] * (abs(spare) + (self.place == "random"))).long()
        return _parts(x, (first if spare >= 0 else -first).tolist(), length)

    def extra_repr(self) -> str:
        """Return the duration and the place."""
        return f"{number_text(self.duration)}, {self.place!r}"


class Shift(Augmentation):
    """Shift each example in time. Samples that leave at one end are lost or wrap around.

    Args:
        time: delay in seconds, rounded to samples; negative values shift to earlier times. A number or a distribution.
        wrap: whether samples wrap around; otherwise silence is inserted.
        fs: sample rate, Hz; None uses the wave's rate or `torchfx.sample_rate`.
        p, generator: as in `Augmentation`.

    Examples:
        >>> Shift(-0.5, fs=4)(torch.tensor([[1.0, 2.0, 3.0, 4.0]]))
        tensor([[3., 4., 0., 0.]])
        >>> Shift(0.25, wrap=True, fs=4)(torch.tensor([[1.0, 2.0, 3.0, 4.0]]))
        tensor([[4., 1., 2., 3.]])
    """

    def __init__(
        self,
        time: float | Distribution,
        wrap: bool = False,
        *,
        fs: float | None = None,
        p: float = 1.0,
        generator: torch.Generator | int | None = None,
    ) -> None:
        """Check the arguments."""
        super().__init__(p, generator)
        for extreme in extremes_of(time):
            finite_number("time", extreme, "s")
        self.time, self.wrap = time, wrap
        self.fs: float | None = FS.check(fs, None)

    def _draw(self, among: Tensor, around: torch.Generator | None) -> Drawn:
        generator = self._generator(around)
        return {"applied": self._applied(among, generator), "time": values_of(self.time, len(among), generator)}

    def _run(self, x: Tensor, drawn: Drawn) -> Tensor:
        time = x.shape[-1]
        later = torch.where(drawn["applied"], drawn["time"] * rate_of(self), 0.0).round().long()
        if not bool(later.any()):
            return x
        if not self.wrap:
            return _parts(x, (-later).tolist(), time)
        y = torch.empty_like(x)
        for row, target, shift in zip(*_rows(x, y), (later % time).tolist(), strict=True):
            target[..., shift:] = row[..., : time - shift]
            target[..., :shift] = row[..., time - shift :]
        return y

    def extra_repr(self) -> str:
        """Return the time and the probability."""
        return f"{self.time!r}, wrap={self.wrap}, {super().extra_repr()}"


class TimeMask(Augmentation):
    """Silence a random time range of each example.

    Args:
        share: fraction of the signal, in [0, 1]: a number or a distribution.
        p, generator: as in `Augmentation`.

    Examples:
        >>> masked = TimeMask(0.25, generator=0)(torch.ones(3, 1, 100))
        >>> (masked == 0).sum(-1).flatten()
        tensor([25, 25, 25])
    """

    def __init__(
        self, share: float | Distribution, *, p: float = 1.0, generator: torch.Generator | int | None = None
    ) -> None:
        """Check the share."""
        super().__init__(p, generator)
        for extreme in extremes_of(share):
            SHARE.check(extreme, None)
        self.share = share

    def _draw(self, among: Tensor, around: torch.Generator | None) -> Drawn:
        generator = self._generator(around)
        applied, share = self._applied(among, generator), values_of(self.share, len(among), generator)
        return {"applied": applied, "share": share, "place": _uniform(len(among), generator)}

    def _run(self, x: Tensor, drawn: Drawn) -> Tensor:
        time = x.shape[-1]
        lengths = torch.where(drawn["applied"], drawn["share"] * time, 0.0).round().long()
        if not bool(lengths.any()):
            return x
        starts = (drawn["place"] * (time - lengths + 1)).long()
        y = x.clone()
        for row, start, length in zip(*_rows(y), starts.tolist(), lengths.tolist(), strict=True):
            row[..., start : start + length] = 0.0
        return y

    def extra_repr(self) -> str:
        """Return the share and the probability."""
        return f"{self.share!r}, {super().extra_repr()}"


class _Speed(Augmentation):
    """Another speed for each example, within its own length: cut at the end, or silent there."""

    made: type[Processor]

    def __init__(
        self, rate: float | Distribution, *, p: float = 1.0, generator: torch.Generator | int | None = None
    ) -> None:
        """Check the rate."""
        super().__init__(p, generator)
        for extreme in extremes_of(rate):
            self.made.declarations["rate"].check(extreme, None)
        self.rate = rate

    def _draw(self, among: Tensor, around: torch.Generator | None) -> Drawn:
        generator = self._generator(around)
        return {"applied": self._applied(among, generator), "rate": values_of(self.rate, len(among), generator)}

    def _run(self, x: Tensor, drawn: Drawn) -> Tensor:
        rows = drawn["applied"].nonzero().flatten().tolist()
        if not rows:
            return x
        rates = drawn["rate"].tolist()
        changed = {i: self._changed(x[i], rates[i]) for i in rows}
        return torch.stack([changed.get(i, row) for i, row in enumerate(x)])

    def _changed(self, x: Tensor, rate: float) -> Tensor:
        """Return a signal (channels, time) at another speed, as long as it is."""
        raise NotImplementedError

    def extra_repr(self) -> str:
        """Return the rate and the probability."""
        return f"{self.rate!r}, {super().extra_repr()}"


class TimeStretch(_Speed):
    """Change the speed of each example and keep its pitch and length; the end is truncated or padded with silence.

    Args:
        rate: speed factor, in [0.1, 10]: a number or a distribution.
        method: "phase_vocoder" or "wsola"; see `torchfx.functional.time_stretch`.
        n_fft: samples in a window, a power of two from 256 to 65536.
        p, generator: as in `Augmentation`.

    Examples:
        >>> TimeStretch(2.0, n_fft=256)(torch.randn(2, 1, 2000)).shape
        torch.Size([2, 1, 2000])
    """

    made = Stretching

    def __init__(
        self,
        rate: float | Distribution,
        method: str = "phase_vocoder",
        n_fft: int = 2048,
        *,
        p: float = 1.0,
        generator: torch.Generator | int | None = None,
    ) -> None:
        """Check the arguments."""
        super().__init__(rate, p=p, generator=generator)
        checked = Stretching(method=method, n_fft=n_fft)
        self.method, self.n_fft = checked.method, checked.n_fft

    def _changed(self, x: Tensor, rate: float) -> Tensor:
        length = max(1, round(x.shape[-1] / rate))
        y = stretched(x, rate, self.method, self.n_fft, min(length, x.shape[-1]))
        return pad(y, (0, x.shape[-1] - y.shape[-1]))


class Varispeed(_Speed):
    """Play each example faster or slower, like a tape machine, and keep its length.

    The end is truncated or padded with silence.

    Args:
        rate: speed factor, in [0.1, 10]: a number or a distribution. It is rounded to 1/200.
        p, generator: as in `Augmentation`.

    Examples:
        >>> y = Varispeed(2.0)(torch.ones(1, 1000))
        >>> y.shape, bool(y[0, 600:].any())
        (torch.Size([1, 1000]), False)
    """

    made = Playing

    def _changed(self, x: Tensor, rate: float) -> Tensor:
        y = Playing(max(1, round(rate * RATE_STEPS)) / RATE_STEPS)(x)[..., : x.shape[-1]]
        return pad(y, (0, x.shape[-1] - y.shape[-1]))


def rate_of(module: Any) -> float:
    """Return the sample rate (Hz) of an augmentation: its `fs`, or the signal's rate."""
    return resolve_rate(module.fs, ambient_rate(), type(module).__name__)


def _uniform(examples: int, generator: torch.Generator | None) -> Tensor:
    return torch.rand(examples, generator=generator, dtype=torch.float64)


def _rows(*tensors: Tensor) -> tuple[Any, ...]:
    """Return tensors whose rows are read and written one after the other: where it is the same, as arrays.

    PyTorch would split each copy among its threads, which takes longer than the copy, and far longer on a busy machine.
    """
    if all(each.is_cpu and is_direct(each) and not each.requires_grad for each in tensors):
        return tuple(each.detach().numpy() for each in tensors)
    return tensors


def _parts(x: Tensor, firsts: list[int], length: int) -> Tensor:
    """Return `length` samples of each example (examples, channels, time) from its first one on, silent outside."""
    y = x.new_zeros(*x.shape[:-1], length)
    for row, target, first in zip(*_rows(x, y), firsts, strict=True):
        start, end = max(first, 0), min(first + length, x.shape[-1])
        if start < end:
            target[..., start - first : end - first] = row[..., start:end]
    return y
