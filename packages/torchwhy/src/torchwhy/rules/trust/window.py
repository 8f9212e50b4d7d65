"""The part of the program that was recorded: its steps, or their absence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from torchwhy.finding import Evidence, Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.steady_state import unrecorded_by_number
from torchwhy.trace.meaning.kinds import HOST
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import counted, duration, percent

__all__ = ["long_steps_elsewhere", "steps_missing", "window_too_short"]

LONGER: Final = 10.0
"""A step that takes at least this many times the median does something else, such as a validation."""

LONG_US: Final = 100_000.0
"""The operating system interrupts programs for shorter times."""

RARE: Final = 0.1
"""Share of the steps; long steps that are more frequent are part of the repeated pattern."""


@rule("A8", "steps-missing", source="torch.profiler.schedule", frees="nothing")
def steps_missing(trace: Trace) -> Iterator[Finding]:
    """The trace has no steps.

    Sees: no `ProfilerStep#` annotation. Where another annotation, the optimizer or the DataLoader repeats, its rounds
    stand in for steps.

    Costs: no result per step is possible: not what repeats, not which round was slow. Set-up, compilation and warm-up
    count as the program's time.

    Fix: `schedule=torch.profiler.schedule(wait=1, warmup=1, active=3)` and `prof.step()` at the end of each round;
    `step()` without a schedule leaves no steps.

    Known problems: what repeats may be a part of a step, or several; a warm-up loop of the same calls counts as steps.
    """
    steps = trace.steps_found
    if (steps and not steps[0].inferred) or not len(trace.events.rows(*HOST)):
        return
    if steps:
        mark = steps[0].mark
        which = f"of {mark}" if steps[0].row >= 0 else f"from one {mark} to the next"
        title = f"No recorded steps; {len(steps)} rounds were inferred, {which}"
        rows = [step.row for step in steps if step.row >= 0]
        cause = "The profiler had no schedule, or step() was not called. What repeats stands in for steps."
    else:
        title, rows = "No recorded steps, and nothing that repeats: everything counts as one round", []
        cause = "The profiler had no schedule, or step() was not called."
    yield Finding(
        title=title if len(title) <= 120 else title[:117] + "...",
        severity="info",
        confidence="high",
        window=trace.window,
        evidence=evidence(trace, rows, limit=3),
        cause=cause,
        fix="profile(schedule=torch.profiler.schedule(wait=1, warmup=1, active=3)), and prof.step() every round.",
        linked=True,
    )


@rule("A9", "window-too-short", source="TraceML: no statement below 2 steps, confident ones from 20", frees="nothing")
def window_too_short(trace: Trace, *, steps: int = 3) -> Iterator[Finding]:
    """Too few steps to show what is typical.

    Sees: one or two recorded steps.

    Costs: the first recorded step is often slower than the others, and one step in twenty is; two steps cannot show it.

    Fix: record at least 3 steps after a warm-up; 20 for statements about the slowest ones.

    Known problems: three steps of a program whose batches differ say as little.
    """
    found = trace.steps_found
    if not found or found[0].inferred or len(found) >= steps:
        return
    number = "one step" if len(found) == 1 else f"{len(found)} steps"
    yield Finding(
        title=f"Only {number} recorded: too little to show what is typical",
        severity="info",
        confidence="high",
        window=trace.window,
        evidence=evidence(trace, [step.row for step in found if step.row >= 0]),
        cause="The schedule's active part is that short, or the program ended.",
        fix="schedule(wait=1, warmup=1, active=3) or more; 20 active steps to judge the slowest.",
        linked=True,
    )


@rule("A21", "long-steps-elsewhere", source="steps timed without a recording, ten times as long", frees="nothing")
def long_steps_elsewhere(trace: Trace, *, share: float = 0.3, steps: int = 20) -> Iterator[Finding]:
    """A few steps that weren't recorded take much of the run's time.

    Sees: among 20 unrecorded steps or more, as `torchwhy profile` times them, two or more that take over ten times the
    median and over 0.1 s, at most one in ten; together 30% of the time of all. No recorded step is as long. The very
    first step, in which much is made once, is left out.

    Costs: what those steps do besides, such as a validation, a metric or a checkpoint, isn't in this recording, and no
    other finding can be about it.

    Fix: record one of them: `torchwhy profile --wait N --active 2`.

    Known problems: the first and the last steps of a run are timed, those in the middle of a very long one aren't.
    """
    timed = {number: us for number, us in trace.derived(unrecorded_by_number).items() if number > 0}
    if len(timed) < steps:
        return
    usual, total = float(np.median(list(timed.values()))), sum(timed.values())
    limit = max(LONGER * usual, LONG_US)
    long = {number: us for number, us in timed.items() if us > limit}
    recorded = max((step.duration / 1000 for step in trace.steps_found), default=0.0)
    together = sum(long.values())
    if not 2 <= len(long) <= RARE * len(timed) or together < share * total or recorded > limit:
        return
    first = min(long)
    yield Finding(
        title=f"{len(long)} of {counted(len(timed), 'unrecorded step')} take {percent(together / total)} of their "
        f"time, up to {duration(max(long.values()))} (median {duration(usual)})",
        severity="high",
        confidence="high",
        window=trace.window,
        evidence=(Evidence(f"step {first}", len(long), together, note="not recorded"),),
        cause="Those steps do something besides, such as a validation, a metric or a checkpoint.",
        fix=f"Record one of them: torchwhy profile --wait {max(first - 2, 0)} --active 2.",
        linked=True,
    )
