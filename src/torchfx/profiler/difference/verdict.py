"""Which side is faster, if either is, in a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from torchfx.profiler.difference.likeness import Likeness
from torchfx.profiler.difference.noise import FEWEST, Shift, shift_of
from torchfx.profiler.difference.rounds import Rounds
from torchfx.profiler.wording import counted, duration, percent

__all__ = ["KINDS", "StepTimes", "Verdict", "step_times", "verdict_on"]

KINDS: Final = ("identical", "faster", "slower", "no difference", "noise unknown", "not comparable")


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

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; pairs are [A, B]."""
        return {
            "clock": self.clock,
            "a_us": [round(value, 3) for value in self.a_us],
            "b_us": [round(value, 3) for value in self.b_us],
            "median_us": [round(value, 3) for value in self.median_us],
            "mean_us": [round(value, 3) for value in self.mean_us],
            "b_over_a": self.shift.to_dict(),
        }


@dataclass(frozen=True)
class Verdict:
    """What the step times say of B.

    Attributes:
        kind: one of `KINDS`.
        sentence: the same for people, with numbers.
    """

    kind: str
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {"kind": self.kind, "sentence": self.sentence}


def step_times(a: Rounds, b: Rounds) -> StepTimes:
    """Take both sides' step times by the same clock."""
    device = (a.lags or b.lags) and len(a.completions) > 0 and len(b.completions) > 0
    times = [(rounds.completions if device else rounds.host) / 1000 for rounds in (a, b)]
    first, second = (tuple(float(value) for value in values) for values in times)
    return StepTimes(first, second, "device" if device else "host", shift_of(first, second))


def verdict_on(times: StepTimes, rounds: tuple[Rounds, Rounds], likeness: Likeness, reason: str) -> Verdict:
    """Judge.

    Args:
        times: of the steps.
        rounds: what they are.
        likeness: of the programs.
        reason: why they can't be compared at all; "" if they can.
    """
    if reason:
        return Verdict("not comparable", f"A and B can't be compared, because {reason}.")
    a, b = times.median_us
    unit = "per step" if rounds[0].are_steps else "for the whole recording"
    numbers = f"{duration(a)} -> {duration(b)} {unit}"
    if not likeness.same_program:
        share = percent(likeness.share or 0.0)
        text = f"these look like different programs ({share} of {likeness.what} in common)"
        return Verdict("not comparable", f"A and B can't be compared, because {text}; {numbers}.")
    shift = times.shift
    if not shift.judged:
        return Verdict(
            "noise unknown", f"B takes {_times(b, a)} times A's time ({numbers}); {_too_few(times, rounds)}."
        )
    noise = f"±{percent(shift.noise)}" if shift.noise < 1 else "a factor of 2 and more"
    if not shift.beyond_noise or (b < a) != (shift.ratio < 1):
        return Verdict("no difference", f"No difference beyond the noise of {noise} ({numbers}).")
    kind, factor = ("faster", a / b) if b < a else ("slower", b / a)
    return Verdict(
        kind, f"B is {factor:.{3 if factor < 1.1 else 2}f}x {kind} ({numbers}, beyond the noise of {noise})."
    )


def _too_few(times: StepTimes, rounds: tuple[Rounds, Rounds]) -> str:
    if not rounds[0].are_steps:
        return "without steps, noise can't be judged"
    fewest = min(len(times.a_us), len(times.b_us))
    return f"with {counted(fewest, 'step')} on a side, noise can't be judged: record {FEWEST} at least, better 10"


def _times(b: float, a: float) -> str:
    return f"{b / a:.2g}" if b < 0.1 * a else f"{b / a:.2f}" if b < 100 * a else f"{b / a:,.0f}"


def _median(values: tuple[float, ...]) -> float:
    return float(np.median(values)) if values else 0.0
