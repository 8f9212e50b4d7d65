"""Reverberation with a feedback delay network and decay times for low, middle and high frequencies."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from torchfx.checks import settled
from torchfx.design.biquad import biquad
from torchfx.effect.channels import per_example
from torchfx.effect.delay_network import DelayNetwork, Network, block_matrix
from torchfx.errors import ArgumentError
from torchfx.parameters import BUTTERWORTH_Q, Value, frequency, number, sample_rate

__all__ = ["FDNReverb"]

LINES = 16
SHORTEST_MS, LONGEST_MS = 20.0, 75.0
"""Delays of a network of size 1; the others lie between them, in a geometric row."""


class FDNReverb(DelayNetwork):
    """Reverb with given decay times (RT60, the time to decay by 60 dB), by a feedback delay network.

    16 delay lines with mutually prime lengths feed each other through a Hadamard matrix, which preserves energy. A line
    of D samples attenuates by 60 D / (fs rt60) dB, so the decay rate is the same on every path. Two shelving filters in
    each line set the decay times of low and high frequencies.

    Every channel feeds all lines and sums all of them, with different signs for each channel: y = (1 - mix) x + mix
    reverberation.

    Source: M. R. Schroeder, Natural Sounding Artificial Reverberation, 1962; J.-M. Jot, A. Chaigne, Digital Delay
    Networks for Designing Artificial Reverberators, 1991.

    Examples:
        >>> import torch
        >>> click = torch.zeros(2, 96_000)
        >>> click[:, 0] = 1
        >>> tail = FDNReverb(rt60=1.0, low_rt60=1.0, high_rt60=1.0, mix=1.0, fs=48_000)(click)
        >>> early, late = (part.square().mean() for part in (tail[0, 12_000:24_000], tail[0, 36_000:48_000]))
        >>> round(float(10 * torch.log10(early / late)))  # in half a second
        30
    """

    rt60: Value = number(default=2.0, low=0.1, high=100.0, unit="s", draws=(0.2, 5.0), doc="between the crossovers")
    low_rt60: Value = number(default=2.5, low=0.1, high=100.0, unit="s", draws=(0.2, 5.0), doc="below low_crossover")
    high_rt60: Value = number(default=1.0, low=0.1, high=100.0, unit="s", draws=(0.2, 5.0), doc="above high_crossover")
    low_crossover: Value = frequency(default=300.0, doc="upper edge of the low band")
    high_crossover: Value = frequency(default=3000.0, doc="lower edge of the high band")
    size: float = number(
        default=1.0, low=0.1, high=2.0, draws=(0.1, 0.2), doc="of the delays, 20 to 75 ms at 1", learnable=False
    )
    mix: Value = number(default=0.3, low=0.0, high=1.0, doc="0: input only, 1: reverberation only")
    fs: float | None = sample_rate(default=None)

    def check_parameters(self) -> None:
        """Raise if there is no middle band."""
        low, high = self.low_crossover, self.high_crossover
        if not isinstance(low, Tensor) and not isinstance(high, Tensor) and low >= high:
            raise ArgumentError(f"low_crossover must lie below high_crossover, {high:g} Hz, got {low:g}")

    def network(self, channels: int, rate: Any) -> Network:
        """Return the lines with their attenuation."""
        delays = _coprime_delays(self.size * SHORTEST_MS / 1000 * rate, self.size * LONGEST_MS / 1000 * rate)
        names = ("low_rt60", "rt60", "high_rt60", "low_crossover", "high_crossover", "mix")
        low, middle, high, low_crossover, high_crossover, mix = (
            per_example(name, getattr(self, name)) for name in names
        )
        options: Any = {"dtype": torch.float64, "device": mix.device}
        loss = torch.tensor([-60.0 * delay / rate for delay in delays], **options)
        low_db, middle_db, high_db = (loss / each[..., None] for each in (low, middle, high))
        shelves = [
            biquad(low_crossover[..., None], BUTTERWORTH_Q, low_db - middle_db, rate, "lowshelf"),
            biquad(high_crossover[..., None], BUTTERWORTH_Q, high_db - middle_db, rate, "highshelf"),
        ]
        hadamard = _hadamard(**options)
        joined = 10 ** (middle_db / 20)[..., None] * hadamard
        entrance = hadamard[:, [channel % LINES for channel in range(channels)]]
        wet = mix[..., None, None] * hadamard[[(channel + channels) % LINES for channel in range(channels)]]
        dry = (1 - mix)[..., None, None] * torch.eye(channels, **options)
        system = block_matrix([[joined, entrance], [wet, dry]])
        return Network(delays, system, torch.cat(torch.broadcast_tensors(*shelves), dim=-2))


def _hadamard(**options: Any) -> Tensor:
    """Return the orthogonal matrix of J. J. Sylvester's construction, whose entries are all +-1 / sqrt(n)."""
    found = torch.ones(1, 1, **options)
    pair = torch.tensor([[1.0, 1.0], [1.0, -1.0]], **options) / math.sqrt(2)
    while len(found) < LINES:
        found = torch.kron(pair, found)
    return found


def _coprime_delays(shortest: float, longest: float) -> list[int]:
    """Return numbers of samples in a geometric row, moved up until no two have a divisor in common."""
    shortest, longest = settled(shortest), settled(longest)
    delays: list[int] = []
    for i in range(LINES):
        candidate = max(2, round(shortest * (longest / shortest) ** (i / (LINES - 1))))
        while any(math.gcd(candidate, delay) > 1 for delay in delays):
            candidate += 1
        delays.append(candidate)
    return delays
