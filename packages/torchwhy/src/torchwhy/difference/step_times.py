"""How long the compared steps take on both sides, by one clock."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from torchwhy.difference.noise import Shift, shift_of
from torchwhy.difference.steps import Rounds

__all__ = ["StepTimes", "step_times"]


@dataclass(frozen=True)
class StepTimes:
    """The times of the compared steps.

    Attributes:
        a_us, b_us: microseconds each, in order.
        clock: "host": the steps' durations there; "device": from the completion of one step's device work to that of
            the next, because the device sets the pace on one side at least.
        shift: how B's relate to A's.
    """

    a_us: tuple[float, ...]
    b_us: tuple[float, ...]
    clock: str
    shift: Shift

    @property
    def median_us(self) -> tuple[float, float]:
        """The median of each side; 0 for a side without times."""
        return _median(self.a_us), _median(self.b_us)

    @property
    def mean_us(self) -> tuple[float, float]:
        """The mean of each side; 0 for a side without times."""
        return (
            float(np.mean(self.a_us)) if self.a_us else 0.0,
            float(np.mean(self.b_us)) if self.b_us else 0.0,
        )


def step_times(a: Rounds, b: Rounds) -> StepTimes:
    """Take both sides' step times by the same clock."""
    device = (a.lags or b.lags) and len(a.completions) > 0 and len(b.completions) > 0
    times = [(rounds.completions if device else rounds.host) / 1000 for rounds in (a, b)]
    first, second = (tuple(float(value) for value in values) for values in times)
    return StepTimes(first, second, "device" if device else "host", shift_of(first, second))


def _median(values: tuple[float, ...]) -> float:
    return float(np.median(values)) if values else 0.0
