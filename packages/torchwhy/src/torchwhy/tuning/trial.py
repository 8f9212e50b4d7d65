"""Changes measured alternately with the unchanged program, and what can be concluded.

Each run is a new process, since what differs between processes (memory layout, placement of threads) is part of the
noise. A run is one value, the mean time of its steps; the intervals are those of `torchwhy diff` and `torchwhy bisect`
(`difference/noise`). All changes run in a few rounds; those that do not look faster are then left out. The others run
until the number of rounds that was set before. A change helps only by an interval whose confidence is corrected for all
changes that were tried (Bonferroni), left out or not: that any change is falsely said to help has a probability of 5 %
at most, however many there are.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final

from torchwhy.difference.noise import MARGIN, Shift, shift_of
from torchwhy.errors import TorchWhyError
from torchwhy.tuning.change import Change
from torchwhy.tuning.records import Record
from torchwhy.tuning.results import Agreement, agreement_of

__all__ = ["ERROR", "FEWEST_ROUNDS", "ROUNDS", "SCREENING", "ProgramFailedError", "Tried", "try_changes"]

ERROR: Final = 0.05
"""How probable it may be that any change is falsely said to help."""

SCREENING: Final = 3
"""Rounds of all changes. The unchanged program runs twice in each: with 6 runs against 3, an interval has 95 %."""

ROUNDS: Final = 8
FEWEST_ROUNDS: Final = 5
"""Rounds of a change that looks faster: 8 runs against 11, at least 5 against 8."""

ROOM: Final = 0.1
"""A change is undecided if its interval leaves room for a gain of more than this."""

_ORDER: Final = random.Random()  # separate, so that nothing else depends on it


class ProgramFailedError(TorchWhyError):
    """The program itself does not run."""


@dataclass(frozen=True)
class Tried:
    """A change and what became of it.

    Attributes:
        change: the change.
        kind: "helps", "no difference seen", "undecided", "slower", "changes the results" or "could not be tried".
        shift: how the times of steps relate to those of the unchanged program; not judged where it could not be tried.
        confidence: of the shift's interval.
        faster: whether that interval, corrected for the number of changes, shows that it is faster.
        agreement: of the results; None where it could not be tried.
        runs: of the changed program.
        saved_us: of each step, by the medians.
        later_us: by how much its first steps are over later, such as by compiling.
        reason: why it could not be tried.
    """

    change: Change
    kind: str
    shift: Shift
    confidence: float
    faster: bool = False
    agreement: Agreement | None = None
    runs: int = 0
    saved_us: float = 0.0
    later_us: float = 0.0
    reason: str = ""


@dataclass
class _Candidate:
    change: Change
    records: list[Record] = field(default_factory=list)
    beside: list[Record] = field(default_factory=list)  # of the unchanged program, from the same rounds
    live: bool = True
    failed: str = ""

    def shift(self, confidence: float) -> Shift:
        return shift_of(
            [record.step_us for record in self.beside], [record.step_us for record in self.records], confidence
        )


def try_changes(
    changes: Sequence[Change],
    measure: Callable[[Change | None], Record | None],
    *,
    plan: Callable[[Sequence[float]], tuple[int, int]] = lambda walls_s: (len(walls_s), ROUNDS),
    affordable: Callable[[Sequence[float], int], int] = lambda walls_s, rounds: len(walls_s),
    time_left: Callable[[], bool] = lambda: True,
    shuffle: Callable[[list[Any]], None] = _ORDER.shuffle,
    screening: int = SCREENING,
    family: int = 0,
) -> tuple[list[Tried], list[Record]]:
    """Measure changes alternately with the unchanged program; return what became of each, and the unchanged runs.

    Args:
        changes: to try.
        measure: runs the program with a change, or as it is; returns None if time ended before the run did.
        plan: how many of the changes that look faster after `screening` continue, the fastest first, and how many
            rounds there are to be in all; it is given the seconds that a run of each took.
        affordable: returns how many changes, the first ones, continue after a round. Its arguments are the number of
            rounds before changes are left out, and the seconds that a run of each took.
        time_left: whether another run may begin. When it says no, the rounds that are whole count: the clock decides,
            and not what they show, so that the probability of an error stays what it is.
        shuffle: puts a list into the order of the next round.
        screening: rounds before changes are left out.
        family: how many changes share the probability of an error, if more than these.

    Raises:
        ProgramFailedError: the unchanged program does not run.
    """
    candidates = [_Candidate(change) for change in changes]
    unchanged: list[Record] = []
    total = screening
    done = 0
    while done < total and any(one.live for one in candidates):
        twice = done < screening
        if not _round([one for one in candidates if one.live], unchanged, measure, time_left, shuffle, 1 + twice):
            break
        done += 1
        live = [one for one in candidates if one.live]
        if live and done < screening:
            for one in live[affordable([one.records[-1].wall_s for one in live], screening - done) :]:
                one.live, one.failed = False, "no time within the budget"
        if done == screening:
            faster = [one for one in live if one.shift(0.95).ratio < 1 / (1 + MARGIN)]
            faster.sort(key=lambda one: one.shift(0.95).ratio)
            go_on, total = plan([one.records[-1].wall_s for one in faster])
            total = max(screening, total)
            for one in live:
                one.live = False
            for one in faster[:go_on]:
                one.live = True
    joint = 1 - ERROR / max(len(changes), family, 1)
    whole = done >= screening
    return [_judged(one, unchanged, joint, whole) for one in candidates], unchanged


def _round(
    live: Sequence[_Candidate],
    unchanged: list[Record],
    measure: Callable[[Change | None], Record | None],
    time_left: Callable[[], bool],
    shuffle: Callable[[list[Any]], None],
    own: int,
) -> bool:
    """Run every change once and the unchanged program `own` times, in any order; return whether there was time."""
    turns: list[_Candidate | None] = [*live, *[None] * own]
    shuffle(turns)
    found: list[tuple[_Candidate, Record]] = []
    beside: list[Record] = []
    for turn in turns:
        if not time_left():
            return False
        record = measure(turn.change if turn is not None else None)
        if record is None:
            return False
        if turn is not None:
            found.append((turn, record))
        elif record.error:
            raise ProgramFailedError(record.error)
        else:
            beside.append(record)
    unchanged += beside
    for one, record in found:
        if record.error:
            one.live, one.failed = False, record.error
        one.records.append(record)
        one.beside += beside
    return True


def _judged(one: _Candidate, unchanged: Sequence[Record], joint: float, whole: bool) -> Tried:
    reason = _why_open(one, unchanged, joint, whole)
    if reason:
        nothing = Shift(1.0, 1.0, 1.0, judged=False)
        return Tried(one.change, "could not be tried", nothing, 0.0, runs=len(one.records), reason=reason)
    confidence = joint if one.live and one.shift(joint).judged else 0.95
    shift = one.shift(confidence)
    faster = one.live and confidence == joint and shift.beyond_noise and shift.ratio < 1
    agreement = agreement_of([each.results for each in unchanged], [each.results for each in one.records])
    kind = "no difference seen"
    if not agreement.same:
        kind = "changes the results"
    elif faster:
        kind = "helps"
    elif shift.beyond_noise and shift.ratio > 1:
        kind = "slower"
    elif not shift.judged or shift.beyond_noise or shift.low < 1 / (1 + ROOM):
        kind = "undecided"
    saved_us = median(each.step_us for each in one.beside) - median(each.step_us for each in one.records)
    later_us = median(each.begins_us for each in one.records) - median(each.begins_us for each in one.beside)
    return Tried(one.change, kind, shift, confidence, faster, agreement, len(one.records), saved_us, later_us)


def _why_open(one: _Candidate, unchanged: Sequence[Record], joint: float, whole: bool) -> str:
    """Why nothing is concluded about a change; "" where something is."""
    if one.failed:
        return one.failed
    if not whole:
        return "the budget ended before"
    if one.live and not one.shift(joint).judged:
        return f"it looks {1 / one.shift(0.95).ratio:.2f} times as fast, and the budget ended before that was certain"
    own, others = ({len(record.steps_us) for record in records} for records in (unchanged, one.records))
    if len(own) == 1 and others != own:
        return f"its runs have {max(others - own)} steps, not {max(own)}"
    return ""
