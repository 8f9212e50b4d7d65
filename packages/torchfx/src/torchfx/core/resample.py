"""Resampling."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from torchfx import _ops
from torchfx.checks import number_text
from torchfx.core.processor import Processor
from torchfx.design.resampling import PASSBAND, QUALITIES, kaiser_reach, low_pass_phases, resampling_reach
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

MOST_TRANSFORMED = 16
"""Ratios of numbers up to this are resampled by transforms in one stage (csrc/resample/transform.cpp)."""

CACHED = 64  # ratios

MOST_OF_HALVED = 0.95
"""The output's rate over the divided one, at most: where they are closer, the second low-pass needs too many taps."""

MARGIN_DB = 6
"""How much more the second of two low-passes attenuates: without it, the images of both add to -172 dB at "VHQ"."""

DOUBLED_DB = 4
"""How much more both attenuate where the first doubles the rate: it makes images of all of the pass band, too."""


class Stage(NamedTuple):
    """One low-pass stage of a resampler.

    Attributes:
        up: number of phases.
        down: every `down`-th of its outputs is kept.
        reach: half of its length, in sampling intervals of its input divided by `up`.
        cutoff: the middle of its transition band, relative to half the rate of its taps.
        attenuation: stop-band attenuation, dB.
    """

    up: int
    down: int
    reach: int
    cutoff: float
    attenuation: float

    def run(self, x: Tensor, origin: int, length: int) -> Tensor:
        """Return outputs 0, ..., length - 1; output 0 lies at `origin`, in the input's sampling intervals over `up`."""
        taps = settings_on(low_pass_phases(self.up, self.cutoff, self.reach, self.attenuation), x.device)
        return _ops.resample_forward(x, taps, self.down, origin + self.reach, length)


class Ratio(NamedTuple):
    """The stages for resampling by a ratio up/down.

    For a ratio of large numbers there are two stages. The first divides the rate by a power of two (if the rate falls
    to less than half) or doubles it; it has the steep transition band, and is computed by FFT at little cost. The
    second only suppresses distant images, and is short.

    Attributes:
        up, down: the ratio in lowest terms.
        divided: divisor of the first stage; 1 if it does not divide.
        doubled: 2 if the first stage doubles the rate, else 1.
        stages: the low-passes, one or two.
    """

    up: int
    down: int
    divided: int
    doubled: int
    stages: tuple[Stage, ...]

    @property
    def reach(self) -> int:
        """How far an output depends on the input to each side, in sampling intervals divided by `up`."""
        last = self.stages[-1]
        first = self.stages[0].reach * last.up // self.divided if len(self.stages) == 2 else 0
        return -(-(last.reach + first) // self.finer)

    @property
    def finer(self) -> int:
        """Steps of the last low-pass per sampling interval over `up`: 2 if the rate is doubled and `up` is odd."""
        return self.stages[-1].down // self.down

    @property
    def latency(self) -> int:
        """Latency of a stream in outputs: the time until the last input that an output depends on has arrived."""
        return resampled_length(self.reach, 1, self.down)

    @property
    def past(self) -> int:
        """Inputs before a block that its outputs depend on."""
        n_taps = 2 * self.reach // self.up + 1
        return resampled_length(n_taps * self.up - 1 + self.latency * self.down - self.reach, 1, self.up)

    def run(self, x: Tensor, origin: int, length: int, first: int = 0) -> Tensor:
        """Return outputs 0, ..., length - 1.

        Args:
            x: (..., time), silence before and after.
            origin: where in x output 0 lies, in sampling intervals over `up`.
            length: how many outputs.
            first: which sample of the signal x begins with: those at multiples of `divided` are kept.
        """
        last = self.stages[-1]
        if len(self.stages) == 1 or length == 0:
            return last.run(x, origin, length)
        offset = -first % self.divided
        origin = (origin - offset * self.up) * self.finer
        begin = (origin - last.reach) // last.up
        count = (origin + (length - 1) * last.down + last.reach) // last.up + 1 - begin
        between = self.stages[0].run(x, offset + begin * self.divided, count)
        return last.run(between, origin - begin * last.up, length)


@lru_cache(CACHED)
def ratio_of(up: int, down: int, quality: str) -> Ratio:
    """Return how to resample at a ratio in lowest terms."""
    attenuation, divided = QUALITIES[quality], 1
    if down > MOST_TRANSFORMED and down % 2 == 1:
        while 2 * divided * up <= MOST_OF_HALVED * down:
            divided *= 2
    if max(up, down) <= MOST_TRANSFORMED:
        cutoff = (1 + PASSBAND) / 2 / max(up, down)
        return Ratio(up, down, 1, 1, (Stage(up, down, resampling_reach(up, down, quality), cutoff, attenuation),))
    doubled = 2 if divided == 1 else 1
    # The lowest rate of the three, as a part of the first low-pass's taps' and of the one between.
    part = min(1.0, up / down) / doubled
    attenuation += DOUBLED_DB if doubled == 2 else 0
    first_reach = kaiser_reach((1 - PASSBAND) * part, attenuation)
    first = Stage(doubled, divided, first_reach, (1 + PASSBAND) / 2 * part, attenuation)
    halved = doubled == 2 and up % 2 == 0
    phases, part = up // 2 if halved else divided * up, divided * part
    reach = kaiser_reach((2 - part * (1 + PASSBAND)) / phases, attenuation + MARGIN_DB)
    cutoff = (1 - part * (1 - PASSBAND) / 2) / phases
    second = Stage(phases, down if halved else doubled * down, reach, cutoff, attenuation + MARGIN_DB)
    return Ratio(up, down, divided, doubled, (first, second))


class Resample(Processor):
    """Change the sample rate; frequencies above half the lower rate are removed.

    n samples become ceil(n rate / fs). The filter has linear phase, and whole signals are aligned with their input. The
    pass band, flat within 0.00001 dB, ends at 0.913 of half the lower rate; from half the lower rate on, images and
    aliases are suppressed by 125 dB ("HQ") or 175 dB ("VHQ"; float32 samples themselves end at some 150 dB).

    Args:
        rate: the output's sample rate, Hz.
        quality: "HQ" or "VHQ".
        fs: the input's sample rate, Hz; None follows the signal's.

    Raises:
        ArgumentError: the ratio of the rates exceeds 256.

    Examples:
        >>> import torch, torchfx as fx
        >>> fx.Wave(torch.randn(2, 44_100), 44_100) | Resample(48_000) | fx.filter.HiButterworth(80)
        Wave(2 channels, 1.000 s, 48000 Hz, torch.float32, cpu)
    """

    rate: float = output_rate(doc="the output's sample rate")
    quality: str = choice(("HQ", "VHQ"), default="HQ", doc="of the low-pass")
    fs: float | None = sample_rate(default=None)

    def check_parameters(self) -> None:
        """Raise if the ratio of the rates is too large."""
        if self.fs is not None:
            self.ratio(self.fs)

    def lti(self, rate: Any) -> LTI | None:
        """Return the identity if the rate does not change."""
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
            from fractions import Fraction

            up, down = Fraction(up, down).limit_denominator(MOST_TERM * down // max(up, down)).as_integer_ratio()
        # The compiler does not look into caches.
        return (ratio_of.__wrapped__ if torch.compiler.is_compiling() else ratio_of)(up, down, self.quality)

    def init_state(
        self, shape: tuple[int, ...], rate: Any, dtype: torch.dtype = torch.float32, device: Any = "cpu"
    ) -> State:
        """Return silence for past input, the position of the next output between two inputs, and the index of the next
        input.
        """
        past = torch.zeros(*shape, self.ratio(rate).past, dtype=dtype, device=device)
        return past, torch.zeros(2, dtype=torch.int64)

    def step(self, x: Tensor, state: State, rate: Any) -> tuple[Tensor, State]:
        """Return the outputs of a block, delayed by `latency_samples`."""
        ratio = self.ratio(rate)
        if ratio.up == ratio.down:
            return x, state
        past, place = state
        (at, first), time = place.tolist(), x.shape[-1]
        heard = torch.cat([past, x], dim=-1)
        count = max(0, -((at - time * ratio.up) // ratio.down))
        origin = at - ratio.latency * ratio.down + past.shape[-1] * ratio.up
        y = ratio.run(heard, origin, count, first - past.shape[-1])
        after = torch.tensor([at + count * ratio.down - time * ratio.up, (first + time) % ratio.divided])
        return y, (heard[..., time:], after)

    def whole(self, x: Tensor, rate: Any) -> Tensor:
        """Return the aligned result in one call."""
        ratio = self.ratio(rate)
        return ratio.run(x, 0, resampled_length(x.shape[-1], ratio.up, ratio.down))

    def latency_samples(self, rate: Any) -> int:
        """Return the latency of a stream in output samples."""
        ratio = self.ratio(rate)
        return 0 if ratio.up == ratio.down else ratio.latency

    def output_rate(self, rate: Any) -> Any:
        """Return the requested rate."""
        return self.rate
