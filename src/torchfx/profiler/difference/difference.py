"""Compare two recordings of a program: `torchfx.profiler.diff`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from torchfx.errors import ArgumentTypeError
from torchfx.profiler.difference.call_tree import Origin, aligned_tree, main_path, origins
from torchfx.profiler.difference.changes import Changes, changes_between
from torchfx.profiler.difference.conditions import conditions_of, device_of
from torchfx.profiler.difference.costs import Side, side_of
from torchfx.profiler.difference.findings import Fate, fates_of
from torchfx.profiler.difference.kernel_sets import KernelSets, kernel_sets
from torchfx.profiler.difference.likeness import Likeness, likeness_of, trains
from torchfx.profiler.difference.rounds import Rounds, rounds_of
from torchfx.profiler.difference.totals import Total, totals_between
from torchfx.profiler.difference.verdict import StepTimes, Verdict, step_times, verdict_on
from torchfx.profiler.rules.diagnose import diagnose
from torchfx.profiler.rules.rule import Rule
from torchfx.profiler.trace.trace import Trace

__all__ = ["SCHEMA", "Difference", "Recording", "diff"]

SCHEMA: Final = 1
"""Version of `Difference.to_dict`."""

TRIFLE: Final = 0.01
"""Changes of less than this part of the step aren't listed."""


GUESS: Final = 0.05
"""Where noise can't be judged, a smaller part of the step is not explained by one path: it may well be noise."""


UNJUDGED: Final = 0.25
"""Where noise can't be judged, a finding is worse or better only when its time changes by more than this."""


@dataclass(frozen=True)
class Recording:
    """One of the two sides.

    Attributes:
        file: where it was read from.
        device: what its work ran on.
        vendor: "nvidia", "amd" or "" where the file doesn't tell.
        events: how many the file has.
        rounds: the steps that are compared.
    """

    file: str
    device: str
    vendor: str
    events: int
    rounds: Rounds

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "file": self.file,
            "device": self.device,
            "vendor": self.vendor,
            "events": self.events,
            "steps": self.rounds.to_dict(),
        }


@dataclass(frozen=True)
class Difference:
    """How B differs from A; all numbers are of an average step, a cold first one left out.

    Printing it gives the text that `torchfx diff` prints.

    Attributes:
        a, b: the recordings.
        verdict: which is faster, beyond the noise.
        steps: the step times it rests on.
        likeness: whether the programs are the same.
        conditions: what else differs: devices, what was recorded, inputs.
        totals: launches, waits, copies, busy and idle time, memory, compilation.
        calls, runtime: operators and annotations, calls of the driver: added, gone, slower, faster.
        kernels, copies: device work: added, gone, slower, faster.
        kernel_sets: whether both run the same kernels; None where neither has any.
        step_us: an average step on the host, on A and on B: what `origins` takes apart.
        main_path: the deepest path of calls that explains most of the change; None where none does.
        origins: disjoint places in the call tree where time was gained or lost.
        findings: fixed, new, worse, better, unchanged.
    """

    a: Recording
    b: Recording
    verdict: Verdict
    steps: StepTimes
    likeness: Likeness
    conditions: tuple[str, ...]
    totals: tuple[Total, ...]
    calls: Changes
    runtime: Changes
    kernels: Changes
    copies: Changes
    kernel_sets: KernelSets | None
    step_us: tuple[float, float]
    main_path: Origin | None
    origins: tuple[Origin, ...]
    findings: tuple[Fate, ...]

    @property
    def two_vendors(self) -> bool:
        """Whether kernels and calls of the driver have different names because the devices' makers differ."""
        return bool(self.a.vendor and self.b.vendor and self.a.vendor != self.b.vendor)

    @property
    def empty(self) -> bool:
        """Whether nothing worth mentioning differs."""
        listed = (self.calls, self.runtime, self.kernels, self.copies)
        changed = any(changes.shown or changes.trifles for changes in listed) or bool(self.origins)
        moved = any(total.beyond_noise for total in self.totals)
        return not changed and not moved and all(fate.state == "unchanged" for fate in self.findings)

    def slower_than(self, fraction: float) -> bool | None:
        """Whether B is slower by more than a fraction, beyond the noise; None where that can't be told.

        Args:
            fraction: 0.05 allows 5 %.
        """
        if self.verdict.kind == "identical":
            return False
        if self.verdict.kind in ("not comparable", "noise unknown"):
            return None
        return self.verdict.kind == "slower" and self.steps.shift.low > 1 + fraction

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as the JSON report has them."""
        return {
            "schema": SCHEMA,
            "a": self.a.to_dict(),
            "b": self.b.to_dict(),
            "verdict": self.verdict.to_dict(),
            "step_times": self.steps.to_dict(),
            "likeness": self.likeness.to_dict(),
            "conditions": list(self.conditions),
            "totals": [total.to_dict() for total in self.totals],
            "operators": self.calls.to_dict(),
            "runtime_calls": self.runtime.to_dict(),
            "kernels": self.kernels.to_dict(),
            "copies": self.copies.to_dict(),
            "kernel_sets": self.kernel_sets.to_dict() if self.kernel_sets else None,
            "host_us_per_step": [round(value, 3) for value in self.step_us],
            "main_path": self.main_path.to_dict() if self.main_path else None,
            "origins": [origin.to_dict() for origin in self.origins],
            "findings": [fate.to_dict() for fate in self.findings],
        }

    def __str__(self) -> str:
        from torchfx.profiler.difference.text import as_text

        return as_text(self)


def diff(
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
        a: the recording before, from `profiler.load`.
        b: the one after.
        rules: whose findings are compared; those of all where None.
        thresholds: of rules, as `diagnose` takes them.

    Raises:
        ArgumentTypeError: a side is no single trace.
    """
    for name, trace in (("a", a), ("b", b)):
        if not isinstance(trace, Trace):
            one = "a trace of profiler.load; of a job, compare rank with rank"
            raise ArgumentTypeError(f"{name} must be {one}, got {type(trace).__name__}")
    whole = _announced(a) != _announced(b) or bool(a.steps_found) != bool(b.steps_found)
    rounds = rounds_of(a, whole=whole), rounds_of(b, whole=whole)
    first, second = side_of(a, rounds[0]), side_of(b, rounds[1])
    times, likeness = step_times(*rounds), likeness_of(first, second)
    verdict = verdict_on(times, rounds, likeness, _obstacle(first, second, likeness))
    if _same_events(a, b):
        verdict = Verdict("identical", "A and B are identical: the two files hold the same events.")
    longer = max(times.median_us)
    trifle = TRIFLE * longer
    tree = aligned_tree(first, second)
    least = _threshold(verdict, times, abs(tree.change_us))
    worth = max(least, GUESS * longer) if verdict.kind == "noise unknown" else least
    places, path = origins(tree, least), main_path(tree, worth)
    listed = {
        name: changes_between(getattr(first, name), getattr(second, name), trifle)
        for name in ("calls", "runtime", "kernels", "copies")
    }
    chosen = None if rules is None else tuple(rules)
    found = tuple(diagnose(trace, rules=chosen, thresholds=thresholds) for trace in (a, b))
    return Difference(
        _recording(first), _recording(second), verdict, times, likeness, conditions_of(first, second, likeness),
        totals_between(first, second), **listed, kernel_sets=kernel_sets(first, second),
        step_us=(tree.us[0], tree.us[1]), main_path=path, origins=places,
        findings=fates_of(
            first, second, found, thresholds or {}, longer, times.shift.noise if times.shift.judged else UNJUDGED
        ),
    )  # fmt: skip


def _threshold(verdict: Verdict, times: StepTimes, change_us: float) -> float:
    """How much a place in the call tree must change: where no difference was found, more than the noise."""
    longer = max(times.median_us)
    noise = times.shift.noise * longer if verdict.kind == "no difference" else 0.0
    return max(TRIFLE * longer, 0.05 * change_us, noise, 1e-6)


def _recording(side: Side) -> Recording:
    return Recording(side.trace.file, device_of(side), side.trace.info.vendor, len(side.trace), side.rounds)


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
    """Whether the rounds of the loop are known: the program told its steps, or what it does once per step did."""
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
