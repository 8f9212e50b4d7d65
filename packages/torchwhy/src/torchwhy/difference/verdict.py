"""Which side is faster, if either is, in a sentence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from torchwhy.difference.likeness import Likeness
from torchwhy.difference.noise import FEWEST, MARGIN, Shift, shift_of
from torchwhy.difference.steps import Rounds
from torchwhy.difference.totals import Total
from torchwhy.wording import counted, duration, percent

__all__ = ["KINDS", "DifferenceVerdict", "StepTimes", "step_times", "verdict_on"]

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


@dataclass(frozen=True)
class DifferenceVerdict:
    """What the step times say of B.

    Attributes:
        kind: one of `KINDS`.
        sentence: the same for people, with numbers.
        device: what became of the device's time meanwhile; "" where there is none, or nothing to compare.
    """

    kind: str
    sentence: str
    device: str = ""


def step_times(a: Rounds, b: Rounds) -> StepTimes:
    """Take both sides' step times by the same clock."""
    device = (a.lags or b.lags) and len(a.completions) > 0 and len(b.completions) > 0
    times = [(rounds.completions if device else rounds.host) / 1000 for rounds in (a, b)]
    first, second = (tuple(float(value) for value in values) for values in times)
    return StepTimes(first, second, "device" if device else "host", shift_of(first, second))


def verdict_on(
    times: StepTimes, rounds: tuple[Rounds, Rounds], likeness: Likeness, reason: str, busy: Total | None
) -> DifferenceVerdict:
    """Judge.

    Args:
        times: of the steps.
        rounds: what they are.
        likeness: of the programs.
        reason: why they can't be compared at all; "" if they can.
        busy: how long the device works per step; None where there is none.
    """
    found = _on_steps(times, rounds, likeness, reason)
    return found if found.kind == "not comparable" else replace(found, device=_device(found.kind, times, busy))


def _on_steps(times: StepTimes, rounds: tuple[Rounds, Rounds], likeness: Likeness, reason: str) -> DifferenceVerdict:
    if reason:
        return DifferenceVerdict("not comparable", f"A and B can't be compared, because {reason}.")
    a, b = times.median_us
    unit = "per step" if rounds[0].are_steps else "for the whole recording"
    numbers = f"{duration(a)} -> {duration(b)} {unit}"
    if not likeness.same_program:
        share = percent(likeness.share or 0.0)
        text = f"these look like different programs ({share} of {likeness.what} in common)"
        return DifferenceVerdict("not comparable", f"A and B can't be compared, because {text}; {numbers}.")
    shift = times.shift
    if not shift.judged:
        return DifferenceVerdict(
            "noise unknown", f"B takes {_times(b, a)} times A's time ({numbers}); {_too_few(times, rounds)}."
        )
    noise = f"±{percent(shift.noise)}" if shift.noise < 1 else "a factor of 2 and more"
    if not shift.beyond_noise or (b < a) != (shift.ratio < 1):
        if shift.within_noise:
            return DifferenceVerdict("no difference", f"No difference beyond the noise of {noise} ({numbers}).")
        change = f"{'+' if shift.ratio > 1 else '-'}{percent(abs(shift.ratio - 1))}, noise {noise}"
        return DifferenceVerdict("no difference", f"No difference of more than {MARGIN:.0%} ({numbers}: {change}).")
    kind, factor = ("faster", a / b) if b < a else ("slower", b / a)
    return DifferenceVerdict(
        kind, f"B is {factor:.{3 if factor < 1.1 else 2}f}x {kind} ({numbers}, beyond the noise of {noise})."
    )


def _device(kind: str, times: StepTimes, busy: Total | None) -> str:
    """What the device's time does where steps take as long as before, or which side of the program changed."""
    if busy is None or not busy.a or not busy.b:
        return ""
    numbers, step, change = f"{duration(busy.a)} -> {duration(busy.b)}", times.median_us, busy.b - busy.a
    if kind == "no difference":
        if not busy.changed:
            return f"The device is busy for as long as before ({numbers})."
        word, part = "less" if change < 0 else "more", f"{busy.b / busy.a - 1:+.0%}"
        return f"But the device is busy for {word} time ({numbers} of each step, {part}), which the host hides."
    if kind == "noise unknown":
        return f"The device is busy for {numbers} of it."
    if not busy.changed:
        return f"The device is busy for as long as before ({numbers}): what changed is the host's."
    if times.clock == "device" or change / (step[1] - step[0] or 1.0) >= 0.6:
        return f"The device's time changed as the steps' did ({numbers})."
    return f"The device is busy for {numbers} of it."


def _too_few(times: StepTimes, rounds: tuple[Rounds, Rounds]) -> str:
    if not rounds[0].are_steps:
        return "without steps, noise can't be judged"
    fewest = min(len(times.a_us), len(times.b_us))
    return f"with {counted(fewest, 'step')} on a side, noise can't be judged: record {FEWEST} at least, better 10"


def _times(b: float, a: float) -> str:
    return f"{b / a:.2g}" if b < 0.1 * a else f"{b / a:.2f}" if b < 100 * a else f"{b / a:,.0f}"


def _median(values: tuple[float, ...]) -> float:
    return float(np.median(values)) if values else 0.0
