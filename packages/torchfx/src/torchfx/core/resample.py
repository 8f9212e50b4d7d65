"""Another sample rate."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torchfx import _ops
from torchfx.checks import number_text
from torchfx.core.processor import Processor
from torchfx.design.resampling import resampling_reach, resampling_taps
from torchfx.errors import ArgumentError
from torchfx.parameters import choice, output_rate, sample_rate
from torchfx.plan import LTI, State
from torchfx.rate import rate_ratio, resampled_length
from torchfx.tensors import settings_on

__all__ = ["Resample"]

MOST_TERM = 200_000
"""Ratios of whole rates up to this many Hz are kept exactly; all others within 3e-11."""

MOST_FACTOR = 256
"""How far the rates may lie apart; there, a phase of the low-pass has some 50 000 taps."""


class Ratio(NamedTuple):
    """What resampling at a ratio up/down takes.

    Attributes:
        up, down: the ratio in lowest terms.
        reach: how far the low-pass reaches to each side, in sampling intervals over `up`.
        n_taps: of each of its phases.
    """

    up: int
    down: int
    reach: int
    n_taps: int

    @property
    def latency(self) -> int:
        """Outputs by which a stream lags: until the last input that an output depends on is there."""
        return resampled_length(self.reach, 1, self.down)

    @property
    def past(self) -> int:
        """Inputs before a block that its outputs depend on."""
        return resampled_length(self.n_taps * self.up - 1 + self.latency * self.down - self.reach, 1, self.up)


class Resample(Processor):
    """Changes the sample rate; what lies beyond half the lower rate is filtered out.

    n samples become ceil(n rate / fs). The filter has linear phase, and whole signals are aligned with their input. The
    pass band, flat within 0.00001 dB, ends at 0.913 of half the lower rate; from half the lower rate on, images and
    aliases are suppressed by 125 dB ("HQ") or 175 dB ("VHQ"; float32 samples themselves end at some 150 dB).

    Args:
        rate: the output's sample rate, Hz.
        quality: "HQ" or "VHQ".
        fs: the input's sample rate, Hz; None follows the signal's.

    Raises:
        ArgumentError: the rates lie further apart than a factor of 256.

    Examples:
        >>> import torch, torchfx as fx
        >>> fx.Wave(torch.randn(2, 44_100), 44_100) | Resample(48_000) | fx.filter.HiButterworth(80)
        Wave(2 channels, 1.000 s, 48000 Hz, torch.float32, cpu)
    """

    rate: float = output_rate(doc="the output's sample rate")
    quality: str = choice(("HQ", "VHQ"), default="HQ", doc="of the low-pass")
    fs: float | None = sample_rate(default=None)

    def check_parameters(self) -> None:
        """Raise where the rates lie too far apart."""
        if self.fs is not None:
            self.ratio(self.fs)

    def lti(self, rate: Any) -> LTI | None:
        """Return the identity where the rate is right already."""
        ratio = self.ratio(rate)
        return LTI() if ratio.up == ratio.down else None

    def ratio(self, rate: float) -> Ratio:
        """Return how to resample from a rate (Hz)."""
        up, down = rate_ratio(rate, self.rate)
        if not down <= MOST_FACTOR * up <= MOST_FACTOR**2 * down:
            low, high = number_text(rate / MOST_FACTOR), number_text(rate * MOST_FACTOR)
            raise ArgumentError(
                f"rate must lie in [{low}, {high}] Hz for a signal of {number_text(rate)} Hz, "
                f"got {number_text(self.rate)} Hz"
            )
        if max(up, down) > MOST_TERM:
            up, down = Fraction(up, down).limit_denominator(MOST_TERM * down // max(up, down)).as_integer_ratio()
        reach = resampling_reach(up, down, self.quality)
        return Ratio(up, down, reach, 2 * reach // up + 1)

    def init_state(
        self, shape: tuple[int, ...], rate: Any, dtype: torch.dtype = torch.float32, device: Any = "cpu"
    ) -> State:
        """Return silence for past input, and where between two inputs the next output lies."""
        past = torch.zeros(*shape, self.ratio(rate).past, dtype=dtype, device=device)
        return past, torch.zeros(1, dtype=torch.int64)

    def step(self, x: Tensor, state: State, rate: Any) -> tuple[Tensor, State]:
        """Return the outputs that lie within a block, as many as `latency_samples` late."""
        ratio = self.ratio(rate)
        if ratio.up == ratio.down:
            return x, state
        past, place = state
        at, time = int(place), x.shape[-1]
        heard = torch.cat([past, x], dim=-1)
        count = max(0, -((at - time * ratio.up) // ratio.down))
        origin = at - ratio.latency * ratio.down + ratio.reach + past.shape[-1] * ratio.up
        y = _ops.resample_forward(heard, self._taps(ratio, x), ratio.down, origin, count)
        after = torch.full_like(place, at + count * ratio.down - time * ratio.up)
        return y, (heard[..., time:], after)

    def whole(self, x: Tensor, rate: Any) -> Tensor:
        """Return the aligned result in one call."""
        ratio = self.ratio(rate)
        length = resampled_length(x.shape[-1], ratio.up, ratio.down)
        return _ops.resample_forward(x, self._taps(ratio, x), ratio.down, ratio.reach, length)

    def _taps(self, ratio: Ratio, x: Tensor) -> Tensor:
        return settings_on(resampling_taps(ratio.up, ratio.down, self.quality), x.device)

    def latency_samples(self, rate: Any) -> int:
        """Return by how many output samples a stream lags."""
        ratio = self.ratio(rate)
        return 0 if ratio.up == ratio.down else ratio.latency

    def output_rate(self, rate: Any) -> Any:
        """Return the rate asked for."""
        return self.rate
