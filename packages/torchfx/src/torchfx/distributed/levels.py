"""Loudness under a true-peak ceiling: the gain before a limiter after which the loudness is right."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from torchfx.checks import number_text
from torchfx.core.processor import Processor
from torchfx.effect.limiter import Limiter
from torchfx.effect.normalize import Normalize
from torchfx.loudness import gated_loudness
from torchfx.parameters import decibels, number, sample_rate
from torchfx.pieces import PIECE, Pieces
from torchfx.plan import State
from torchfx.rate import ambient_rate

__all__ = ["LimitedLoudness"]

TOLERANCE = 0.1
"""LU to the target."""

MOST_DB = 12.0
"""Gain that compensates for the limiter at most: more of it distorts speech audibly, and makes it hardly louder."""

ROUNDS = 10
"""Limited signals that are measured at most; speech needs 3 or 4."""


class LimitedLoudness(Processor):
    """Scale a signal so that it has an integrated loudness after a true-peak limiter.

    The limiter makes a signal with high peaks quieter; the gain is found by measuring limited signals, to 0.1 LU. It is
    at most 12 dB more than without a limiter. A warning gives the loudness if that is not enough; silence stays silent.

    Examples:
        >>> import torch, torchfx as fx
        >>> x = 0.1 * torch.randn(1, 48_000, generator=torch.Generator().manual_seed(0))
        >>> y = LimitedLoudness(-14.0, -1.0, fs=48_000)(x)
        >>> print(f"{fx.loudness.integrated(y, 48_000):.1f} LUFS")
        -14.0 LUFS
    """

    lufs: float = number(low=-70.0, high=0.0, unit="LUFS", learnable=False, doc="loudness of the result")
    ceiling_db: float = decibels(low=-200.0, high=200.0, doc="level of the largest peak")
    fs: float | None = sample_rate(default=None)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scaled and limited signal."""
        return torch.cat(list(self.in_pieces(Pieces.of(x))), dim=-1)

    def in_pieces(self, x: Pieces) -> Iterator[Tensor]:
        """Yield the scaled and limited signal; it is read several times."""
        rate = self.rate_for(ambient_rate())
        assert rate is not None
        with torch.no_grad():
            plain = self._measured((piece for _, piece in x.in_order()), rate)
            gain_db = self.lufs - plain if plain > -torch.inf else 0.0
            if plain > -torch.inf:
                gain_db = self._searched(lambda gain: self._measured(self._limited(x, gain, rate), rate), gain_db)
            else:
                warnings.warn("the signal is silent or below -70 LUFS: its loudness stays", UserWarning, stacklevel=2)
            yield from self._limited(x, gain_db, rate)

    def _searched(self, measured: Callable[[float], float], gain_db: float) -> float:
        """Return the gain at which the loudness is right, or the nearest to it in range."""
        low, high = gain_db, gain_db + MOST_DB  # a limiter makes nothing louder
        found = before = (gain_db, measured(gain_db))
        slope = 1.0
        for _ in range(ROUNDS - 1):
            missing = self.lufs - found[1]
            if abs(missing) <= TOLERANCE / 2:
                break
            gain_db = min(max(found[0] + missing / slope, low), high)
            if gain_db == found[0]:
                break
            before, found = found, (gain_db, measured(gain_db))
            slope = min(max((found[1] - before[1]) / (found[0] - before[0]), 0.05), 1.0)
        if abs(self.lufs - found[1]) > TOLERANCE:
            warnings.warn(
                f"the loudness is {found[1]:.1f} instead of {number_text(self.lufs)} LUFS: up to {MOST_DB:.0f} dB of "
                f"gain before the limiter at {number_text(self.ceiling_db)} dBTP do not reach it; "
                "compress the signal, or choose a lower loudness",
                UserWarning,
                stacklevel=2,
            )
        return found[0]

    def _limited(self, x: Pieces, gain_db: float, rate: float) -> Iterator[Tensor]:
        """Yield the limited signal, aligned with the signal."""
        limiter = Limiter(self.ceiling_db, true_peak=True)
        late, gain = limiter.latency_samples(rate), 10 ** (gain_db / 20)
        state = limiter.init_state(x.shape[:-1], rate, x.read(0, 0).dtype)
        for start in range(0, x.time + late, PIECE):
            stop = min(x.time + late, start + PIECE)
            y, state = limiter.step(gain * x.read(start, stop), state, rate)
            yield y[..., max(0, late - start) :]

    def _measured(self, pieces: Iterator[Tensor], rate: float) -> float:
        """Return the loudness, LUFS."""
        meter = Normalize(method="lufs")
        state: State = ()
        for piece in pieces:
            state = state or meter.init_state(tuple(piece.shape[:-1]), rate, piece.dtype)
            state = meter.measure(piece, state, rate)
        return float(gated_loudness(state[0]))
