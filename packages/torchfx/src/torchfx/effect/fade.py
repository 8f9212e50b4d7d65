"""Fades at both ends of a signal."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from torchfx.core.processor import Processor
from torchfx.parameters import choice, duration, duration_samples, sample_rate
from torchfx.pieces import Pieces
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
    """Fade a signal in from silence at its beginning, and out to silence at its end.

    With t from 0 to 1, the gain of a fade-in is t (`linear`), sin(pi t / 2) (`quarter_sine`, equal power),
    (1 - cos(pi t)) / 2 (`half_sine`), t 2^(t - 1) (`exponential`) or log10(0.1 + 0.9 t) + 1 (`logarithmic`).
    A fade-out is the same backwards. Of a fade longer than the signal, the part that fits is heard.

    Examples:
        >>> import torch
        >>> Fade("3 samples", "2 samples", "linear", fs=48_000)(torch.ones(6))
        tensor([0.0000, 0.5000, 1.0000, 1.0000, 1.0000, 0.0000])
    """

    fade_in: float | str = duration(default=0.01, plausible=60.0, doc="how long the beginning rises")
    fade_out: float | str = duration(default=0.01, plausible=60.0, doc="how long the end falls")
    shape: str = choice(
        ("linear", "quarter_sine", "half_sine", "exponential", "logarithmic"), default="half_sine", doc="of both fades"
    )
    fs: float | None = sample_rate(default=None)

    def forward(self, x: Tensor) -> Tensor:
        """Fade a whole signal."""
        time = x.shape[-1]
        return x * self._gain(torch.arange(time, dtype=torch.float64, device=x.device), time).to(x.dtype)

    def in_pieces(self, x: Pieces) -> Iterator[Tensor]:
        """Yield the faded signal."""
        for start, y in x.in_order():
            at = torch.arange(start, start + y.shape[-1], dtype=torch.float64)
            yield y * self._gain(at, x.time).to(y.dtype)

    def _gain(self, at: Tensor, time: int) -> Tensor:
        """Return the gain at samples (n,) of a signal of so many."""
        rate = self.rate_for(None if torch.compiler.is_dynamo_compiling() else ambient_rate())
        assert rate is not None
        lengths = [duration_samples(each, rate) for each in (self.fade_in, self.fade_out)]
        rising, falling = (
            SHAPES[self.shape]((place / max(1, length - 1)).clamp(max=1)) if length else torch.ones_like(at)
            for place, length in zip((at, time - 1 - at), lengths, strict=True)
        )
        return rising * falling
