"""Fades at both ends of a signal."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache

import torch
from torch import Tensor

from torchfx._ops import elementwise
from torchfx._ops.observers import modes_active
from torchfx.core.processor import Processor
from torchfx.parameters import choice, duration, duration_samples, sample_rate
from torchfx.pieces import Pieces
from torchfx.plan.steps import lasting
from torchfx.rate import ambient_rate

__all__ = ["Fade"]

SHAPES: dict[str, Callable[[Tensor], Tensor]] = {
    "linear": lambda t: t,
    "quarter_sine": lambda t: torch.sin(t * (math.pi / 2)),
    "half_sine": lambda t: (1 - torch.cos(t * math.pi)) / 2,
    "exponential": lambda t: t * torch.exp2(t - 1),
    "logarithmic": lambda t: torch.log10(0.1 + 0.9 * t) + 1,
}
"""The gain at a part t in [0, 1] of a fade-in."""


class Fade(Processor):
    """Fade a signal in at its beginning and out at its end.

    With t from 0 to 1, the gain of a fade-in is t (`linear`), sin(pi t / 2) (`quarter_sine`, equal power),
    (1 - cos(pi t)) / 2 (`half_sine`), t 2^(t - 1) (`exponential`) or log10(0.1 + 0.9 t) + 1 (`logarithmic`).
    A fade-out is a fade-in reversed in time. A fade longer than the signal is truncated.

    Examples:
        >>> import torch
        >>> Fade("3 samples", "2 samples", "linear", fs=48_000)(torch.ones(6))
        tensor([0.0000, 0.5000, 1.0000, 1.0000, 1.0000, 0.0000])
    """

    fade_in: float | str = duration(default=0.01, plausible=60.0, doc="duration of the fade-in")
    fade_out: float | str = duration(default=0.01, plausible=60.0, doc="duration of the fade-out")
    shape: str = choice(
        ("linear", "quarter_sine", "half_sine", "exponential", "logarithmic"),
        default="half_sine",
        doc="shape of both fades",
    )
    fs: float | None = sample_rate(default=None)

    def refusal(self) -> str:
        """Return the reason why the processor cannot run in a stream."""
        return "needs the whole signal, since the fade-out begins at a distance from its end"

    def forward(self, x: Tensor) -> Tensor:
        """Fade a whole signal."""
        return self._faded(x, 0, x.shape[-1])

    def in_pieces(self, x: Pieces) -> Iterator[Tensor]:
        """Yield the faded signal."""
        for start, y in x.in_order():
            yield self._faded(y, start, x.time)

    def _faded(self, x: Tensor, start: int, time: int) -> Tensor:
        """Return a piece that begins at a sample of a signal with this number of samples."""
        rate = self.rate_for(None if torch.compiler.is_dynamo_compiling() else ambient_rate())
        assert rate is not None
        first, last = (duration_samples(each, rate) for each in (self.fade_in, self.fade_out))
        y, stop = elementwise.clone(x), start + x.shape[-1]
        if start < first:
            rising = self._gains(first, x)[start:stop]
            elementwise.scale(y[..., : len(rising)], rising)
        if stop > time - last:
            falling = elementwise.flip(self._gains(last, x)[time - stop : time - start])
            elementwise.scale(y[..., y.shape[-1] - len(falling) :], falling)
        return y

    def _gains(self, length: int, x: Tensor) -> Tensor:
        """Return the gains of a fade-in, of the type of x and on its device."""
        watched = torch.compiler.is_compiling() or modes_active()
        return (_rising if watched else _kept)(self.shape, length, x.dtype, x.device)


def _rising(shape: str, length: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return the gains of a fade-in of this length in samples, computed in float64."""
    at = torch.arange(length, dtype=torch.float64, device=device)
    return SHAPES[shape](at / max(1, length - 1)).to(dtype)


@lru_cache(maxsize=16)
def _kept(shape: str, length: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return the same, made once: PyTorch takes a cosine of 480 numbers on all threads."""
    with lasting():
        return _rising(shape, length, dtype, device)
