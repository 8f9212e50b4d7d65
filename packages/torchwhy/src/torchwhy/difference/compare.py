"""Compare two recordings of a program, as `torchwhy.diff` does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from torchwhy.difference.call_tree import aligned_tree, main_path, origins
from torchwhy.difference.changes import changes_between
from torchwhy.difference.compiled import costs_of_compiling, is_compiled
from torchwhy.difference.conditions import conditions_of, device_of
from torchwhy.difference.costs import Side, side_of
from torchwhy.difference.difference import Difference, RecordedTrace
from torchwhy.difference.findings import Fate, fates_of
from torchwhy.difference.kernel_sets import kernel_sets
from torchwhy.difference.labels import labels_between
from torchwhy.difference.likeness import Likeness, likeness_of, trains
from torchwhy.difference.step_times import StepTimes, step_times
from torchwhy.difference.steps import rounds_of
from torchwhy.difference.totals import totals_between
from torchwhy.difference.verdict import DifferenceVerdict, verdict_on
from torchwhy.rules.diagnose import diagnose
from torchwhy.rules.rule import Rule
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import shared_path

__all__ = ["compare"]

TRIFLE: Final = 0.01
"""Changes of less than this part of the step aren't listed."""

GUESS: Final = 0.05
"""If noise can't be judged, a smaller part of the step is not explained by one path: it may well be noise."""

UNJUDGED: Final = 0.25
"""If noise can't be judged, a finding is worse or better only when its time changes by more than this."""


def compare(
    a: Trace,
    b: Trace,
    *,
    rules: Iterable[Rule] | None = None,
    thresholds: Mapping[str, Mapping[str, Any]] | None = None,
) -> Difference:
    """Say how recording B differs from recording A: what takes longer, what came and went, what is fixed.

    Everything is per step, so that recordings with different numbers of steps compare. A difference of step times
    counts only beyond the steps' own noise; with fewer than three steps on a side there is no saying. Recordings of
    different programs are compared by their numbers, but none is called faster.

    Args:
        a: the recording before, from `torchwhy.load`.
        b: the one after.
        rules: whose findings are compared; those of all where None.
        thresholds: of rules, as `diagnose` takes them.
    """
    whole = _announced(a) != _announced(b) or bool(a.steps_found) != bool(b.steps_found)
    rounds = rounds_of(a, whole=whole), rounds_of(b, whole=whole)
    first, second = side_of(a, rounds[0]), side_of(b, rounds[1])
    times, likeness, totals = step_times(*rounds), likeness_of(first, second), totals_between(first, second)
    busy = next((total for total in totals if total.name == "device busy"), None)
    verdict = verdict_on(times, rounds, likeness, _obstacle(first, second, likeness), busy)
    if _same_events(a, b):
        verdict = DifferenceVerdict("identical", "A and B are identical: the two files hold the same events.")
    longer = max(times.median_us)
    trifle = TRIFLE * longer
    tree = aligned_tree(first, second)
    least = _threshold(verdict, times, abs(tree.change_us))
    worth = max(least, GUESS * longer) if verdict.kind == "noise unknown" else least
    places = origins(tree, least)
    listed = {
        name: changes_between(getattr(first, name), getattr(second, name), trifle)
        for name in ("calls", "runtime", "kernels", "copies")
    }
    chosen = None if rules is None else tuple(rules)
    found = tuple(diagnose(trace, rules=chosen, thresholds=thresholds) for trace in (a, b))
    noise = times.shift.noise if times.shift.judged else UNJUDGED
    fates = fates_of(first, second, found, thresholds or {}, longer, noise)
    alike = likeness.same_program and device_of(first) == device_of(second)
    if alike and (costly := costs_of_compiling(first, second, totals, times)):
        new = is_compiled(second)
        fates = (
            Fate("new" if new else "fixed", costly, (0.0, costly.time_us) if new else (costly.time_us, 0.0)),
            *fates,
        )
    return Difference(
        _recording(first), _recording(second), verdict, times, likeness, conditions_of(first, second, likeness),
        totals, **listed, kernel_sets=kernel_sets(first, second), step_us=(tree.us[0], tree.us[1]),
        main_path=main_path(tree, places, worth), origins=places, findings=fates,
        labels=labels_between(first, second, likeness.labels) if likeness.what == "labels" else (),
    )  # fmt: skip


def _threshold(verdict: DifferenceVerdict, times: StepTimes, change_us: float) -> float:
    """How much a place in the call tree must change: where no difference was found, more than the noise."""
    longer = max(times.median_us)
    noise = times.shift.noise * longer if verdict.kind == "no difference" else 0.0
    return max(TRIFLE * longer, 0.05 * change_us, noise, 1e-6)


def _recording(side: Side) -> RecordedTrace:
    return RecordedTrace(
        shared_path(side.trace.file), device_of(side), side.trace.info.vendor, len(side.trace), side.rounds
    )


def _obstacle(a: Side, b: Side, likeness: Likeness) -> str:
    """Why two recordings can't be compared though the program may be the same, or ""."""
    empty = [which for which, side in (("A", a), ("B", b)) if side.trace.span[1] <= side.trace.span[0]]
    if empty:
        return f"{' and '.join(empty)} {'has' if len(empty) == 1 else 'have'} no events that take any time"
    recorded = [bool(side.trace.steps_found) and not side.trace.steps_found[0].inferred for side in (a, b)]
    if any(recorded) and _announced(a.trace) != _announced(b.trace):
        return f"only {'A' if recorded[0] else 'B'} has steps"
    kinds = a.rounds.kind, b.rounds.kind
    if kinds[0] != kinds[1] and (a.rounds.by_annotation or b.rounds.by_annotation):
        return f"a step of A is a {kinds[0]}, a step of B a {kinds[1]}"
    if likeness.same_program and trains(a) != trains(b):
        return f"only {'A' if trains(a) else 'B'} runs a backward pass"
    return ""


def _announced(trace: Trace) -> bool:
    """Whether the rounds of the loop are known: from the program's steps, or from what it does once per step."""
    return bool(trace.steps_found) and (not trace.steps_found[0].inferred or trace.steps_found[0].row < 0)


def _same_events(a: Trace, b: Trace) -> bool:
    if a is b:
        return True
    first, second = a.events, b.events
    return (
        len(first) == len(second) > 0
        and np.array_equal(first.ts, second.ts)
        and np.array_equal(first.dur, second.dur)
        and np.array_equal(first.name, second.name)
        and first.texts == second.texts
    )
