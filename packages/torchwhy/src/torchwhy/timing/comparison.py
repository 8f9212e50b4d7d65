"""Results of `compare`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from torchwhy.timing.measurement import Measurement
from torchwhy.timing.quantiles import median_interval, quantile
from torchwhy.wording import percent

__all__ = ["Comparison", "Ratio", "paired_ratio"]


@dataclass(frozen=True)
class Ratio:
    """Time of `name` over time of `baseline`: the median over rounds, and its interval.

    The interval (`low`, `high`) contains the median with the given `confidence`. With too few rounds this is below
    `required`, and no difference is claimed.
    """

    name: str
    baseline: str
    ratio: float
    low: float
    high: float
    confidence: float
    required: float
    margin: float

    @property
    def verdict(self) -> str:
        """`faster` or `slower` if the whole interval lies beyond 1 -+ margin, else `undecided`.

        >>> Ratio("a", "b", 0.9, 0.88, 0.92, 0.97, 0.95, 0.01).verdict
        'faster'
        >>> Ratio("a", "b", 0.9, 0.88, 0.995, 0.97, 0.95, 0.01).verdict
        'undecided'
        """
        if self.confidence < self.required:
            return "undecided"
        return "faster" if self.high < 1 - self.margin else "slower" if self.low > 1 + self.margin else "undecided"

    @property
    def said(self) -> str:
        """The verdict in words, or the reason why it is undecided."""
        if self.verdict != "undecided":
            return self.verdict
        if self.confidence < self.required:
            return "too few rounds"
        if self.margin > 0 and 1 - self.margin <= self.low and self.high <= 1 + self.margin:
            return f"within the margin of {percent(self.margin)}"
        if self.low <= 1 <= self.high:
            return "within the noise"
        less = percent(self.margin)
        return f"beyond the noise, but less than {less} can't be excluded: measure for longer"

    def __str__(self) -> str:
        """Return the ratio, its interval and the verdict in one line."""
        text = f"{self.name} takes {self.ratio:.3f} ({self.low:.3f} .. {self.high:.3f}) of the time of {self.baseline}"
        return f"{text}: {self.said}"


def paired_ratio(a: Measurement, b: Measurement, confidence: float, margin: float) -> Ratio:
    """Return the ratio of a's time to b's, from alternating runs.

    The ratio is computed within each round, so effects on both (clocks, heat, other processes) cancel. The interval of
    its median comes from order statistics and assumes no distribution.

    >>> a, b = Measurement("a", (1.0, 2.0, 3.0)), Measurement("b", (2.0, 4.0, 6.0))
    >>> paired_ratio(a, b, 0.95, 0.01).ratio
    0.5
    """
    ratios = [x / y for x, y in zip(a.times_s, b.times_s, strict=True)]
    interval = median_interval(ratios, confidence)
    ratio = quantile(ratios, 0.5)
    return Ratio(a.name, b.name, ratio, interval.low, interval.high, interval.confidence, confidence, margin)


@dataclass(frozen=True, repr=False)
class Comparison:
    """Result of a comparison.

    Attributes:
        measurements: one per function, in the order given; the first is the baseline.
        ratios: each other function's time over the baseline's.
        winner: the name of the function that is faster than all others beyond the noise, or None.
    """

    measurements: tuple[Measurement, ...]
    ratios: tuple[Ratio, ...]
    winner: str | None

    def __getitem__(self, name: str) -> Measurement:
        """Return the measurement of that name; KeyError otherwise."""
        return {m.name: m for m in self.measurements}[name]

    @property
    def said(self) -> str:
        """Whether there is a winner, in words."""
        if self.winner:
            return f"{self.winner} is faster than every other"
        (first, *others) = self.ratios
        return "no function is known to be faster than every other" if others else f"no winner: {first.said}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "winner": self.winner,
            "ratios": [{**asdict(ratio), "verdict": ratio.verdict} for ratio in self.ratios],
            "measurements": [m.to_dict() for m in self.measurements],
        }

    def __str__(self) -> str:
        """Return one block of lines: measurements, ratios, decision."""
        return "\n".join([*map(str, self.measurements), *map(str, self.ratios), self.said])

    __repr__ = __str__
