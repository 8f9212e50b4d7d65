"""Which side is faster, if either is, in a sentence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from torchwhy.difference.likeness import Likeness
from torchwhy.difference.noise import FEWEST, MARGIN
from torchwhy.difference.step_times import StepTimes
from torchwhy.difference.steps import Rounds
from torchwhy.difference.totals import Total
from torchwhy.wording import counted, duration, percent

__all__ = ["KINDS", "DifferenceVerdict", "verdict_on"]

KINDS: Final = ("identical", "faster", "slower", "no difference", "noise unknown", "not comparable")

APART: Final = 1.25
"""The device's time and the step's time change differently if their factors differ by this ratio or more."""


@dataclass(frozen=True)
class DifferenceVerdict:
    """The comparison of B's step times with A's.

    Attributes:
        kind: one of `KINDS`.
        sentence: the same for people, with numbers.
        device: the change of the device's time; "" without a device or a comparison.
    """

    kind: str
    sentence: str
    device: str = ""


def verdict_on(
    times: StepTimes, rounds: tuple[Rounds, Rounds], likeness: Likeness, reason: str, busy: Total | None
) -> DifferenceVerdict:
    """Judge.

    Args:
        times: of the steps.
        rounds: what they are.
        likeness: of the programs.
        reason: why they can't be compared at all; "" if they can.
        busy: how long the device works per step; None without a device.
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
    """The change of the device's time where steps take as long as before, or the side of the program that changed."""
    if busy is None or not busy.a or not busy.b:
        return ""
    numbers, step, change = f"{duration(busy.a)} -> {duration(busy.b)}", times.median_us, busy.b - busy.a
    same = "as long as before" if _alike(busy) else "a time that varies too much from step to step to compare"
    if kind == "no difference":
        if not busy.changed:
            return f"The device is busy for {same} ({numbers})."
        word, part = "less" if change < 0 else "more", f"{busy.b / busy.a - 1:+.0%}"
        return f"But the device is busy for {word} time ({numbers} of each step, {part}), which the host hides."
    if kind == "noise unknown":
        if max(busy.b / busy.a, step[1] / step[0]) > APART * min(busy.b / busy.a, step[1] / step[0]):
            return f"But its device is busy for {_times(busy.b, busy.a)} times as long as A's ({numbers})."
        return f"The device is busy for {numbers} of it."
    if not busy.changed:
        return f"The device is busy for {same} ({numbers}){': the change is on the host' if _alike(busy) else ''}."
    if times.clock == "device" or change / (step[1] - step[0] or 1.0) >= 0.6:
        return f"The device's time changed as the steps' did ({numbers})."
    return f"The device is busy for {numbers} of it."


def _alike(total: Total) -> bool:
    """Whether both sides' values are the same to `MARGIN`: a change that isn't proven may still be large."""
    assert total.a is not None
    assert total.b is not None
    return abs(total.b - total.a) <= MARGIN * max(total.a, total.b)


def _too_few(times: StepTimes, rounds: tuple[Rounds, Rounds]) -> str:
    if not rounds[0].are_steps:
        return "without steps, noise can't be judged"
    fewest = min(len(times.a_us), len(times.b_us))
    return f"with {counted(fewest, 'step')} on a side, noise can't be judged: record {FEWEST} at least, better 10"


def _times(b: float, a: float) -> str:
    return f"{b / a:.2g}" if b < 0.1 * a else f"{b / a:.2f}" if b < 10 * a else f"{b / a:,.0f}"
