"""Steps that take longer than the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from torchwhy.finding import Evidence, Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.processor_time import processor_time
from torchwhy.trace.derived.steady_state import settled, steady_window, unrecorded_steps
from torchwhy.trace.derived.step_differences import longer_in, operators_in, unhurried
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.steps import Step, main_phase
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import duration, duration_ns, percent

__all__ = ["step_tail"]

_MORE: Final = 2.0
"""A step with at least this many times the others' operators does something else."""

_ALIKE: Final = 1.25
"""A step with at most this many times the others' operators does nothing else: the first of an epoch draws an order,
the last has fewer samples.
"""

_ENOUGH: Final = 20
"""From this number of steps on, one slow step shows that one step in twenty is slow."""


@rule("B12", "step-tail", source="largest over median above 1.5", frees="all")
def step_tail(trace: Trace, *, ratio: float = 1.5, steps: int = 3, share: float = 0.02) -> Iterator[Finding]:
    """Some steps take much longer than the others.

    Sees: among three steps or more, a cold first one left out, some longer than 1.5 times the median, which together
    lose 2% of the window or more; and what differs in them. With a GPU, only the device's idle time counts: a host that
    waits until the device has caught up loses nothing. One slow step among few is an outlier, which is mentioned:
    whether it comes back, 20 steps show. So are steps that do the same as the others on a machine so busy that
    waiting for a processor may be most of what they lost, as `torchwhy profile` notes it; and steps whose
    additional operators take most of what they are longer, as recorded or at the usual time for an operator and the
    code around it: the work may be meant, such as a rollout or validation, and rules about that work see whether it
    is slow.

    Costs: the time above the median. With many processes, each waits for the slowest.

    Fix: what the evidence shows: collection of garbage, logging or checkpoints every N steps, batches that come late or
    differ in shape, allocation, recompilation.

    Known problems: on a busy machine the operating system makes such steps; traces that `torchwhy profile` didn't write
    don't show it.
    """
    start, window = settled(trace), trace.derived(steady_window)
    found = [step for step in main_phase(trace.steps_found) if step.start >= start]
    found = found[1:] if len(found) > steps and start == trace.window.start else found
    if len(found) < steps:
        return
    own = np.array([step.duration for step in found], np.int64)
    typical = float(np.median(own))
    slow = np.flatnonzero(own > ratio * typical)
    waited = unhurried(trace, found)
    excess = float(np.minimum(own[slow] - typical, np.maximum(waited[slow] - np.median(waited), 0)).sum())
    if not len(slow) or len(slow) * 2 >= len(own) or excess < share * (window.end - window.start):
        return
    worst = found[int(own.argmax())]
    others = [found[i] for i in range(len(own)) if i not in set(slow.tolist())]
    rows, times = longer_in(trace, worst, others)
    cause, fix, ordinary = _why(trace, worst, others, int(times.sum()), excess)
    alone = len(slow) == 1 and len(own) < _ENOUGH
    unrecorded = trace.derived(unrecorded_steps)
    as_slow = int(np.count_nonzero(unrecorded * 1000 > ratio * typical))
    unrecorded_too = (
        f" Of the {len(unrecorded):,} unrecorded steps, {as_slow:,} are as slow." if len(unrecorded) else ""
    )
    alone = alone and as_slow <= len(unrecorded) * 0.05
    usual, longest = duration_ns(typical), duration_ns(own.max())
    take = "takes" if len(slow) == 1 else "take"
    yield Finding(
        title=f"{len(slow)} of {len(own)} steps {take} over {ratio:g} times the median {usual}, up to {longest}",
        severity="info" if alone or ordinary else "",
        confidence="low" if alone or ordinary else "high" if len(own) >= 20 else "medium",
        time_us=excess / 1000,
        stretches=Intervals.union([found[i].start for i in slow], [found[i].end for i in slow]),
        window=window,
        evidence=evidence(trace, rows, times=times, note=f"more than usual in {worst.name}")
        or (Evidence(worst.name, 1, float(own.max()) / 1000, worst.start / 1000),),
        cause=cause + unrecorded_too,
        fix=fix,
    )


def _why(trace: Trace, worst: Step, others: Sequence[Step], explained: int, lost: float) -> tuple[str, str, bool]:
    """Whether the slowest step does more, does the same more slowly, or does something unseen; and what to do.

    Besides: whether a busy machine or work that is meant may be the reason.
    """
    count = operators_in(trace, (worst, *others))
    excess = worst.duration - float(np.median([step.duration for step in others]))
    outside, usual = explained * 2 < excess, float(np.median(count[1:]))
    spent = trace.derived(processor_time)
    if count[0] <= _ALIKE * usual and spent is not None and 2 * 1000 * spent.waited_us >= lost:
        return (
            "The machine was busy: in this recording the program waited for a processor for "
            f"{duration(spent.waited_us)}; these steps lost {duration_ns(lost)}.",
            "Record again on an idle machine.",
            True,
        )
    if count[0] > _MORE * usual:
        typical = float(np.median([step.duration for step in others]))
        as_usual = (count[0] - usual) * typical / max(usual, 1.0)  # of many small operators, few names explain little
        return (
            f"The slowest step calls {count[0]:,} operators, the others {usual:,.0f} (median).",
            "See what that step does in addition: validation or a rollout may be meant; a loop over rows becomes "
            "operators on the whole tensor.",
            not outside or as_usual >= excess,
        )
    if outside:
        return (
            f"{percent(1 - explained / excess)} of the extra time lies outside of any operator: Python, files, garbage "
            "collection, or waiting.",
            "See what Python does there: a late batch, a log, a file, garbage collection. record_function shows which "
            "code it is; what every step doesn't need goes to fewer steps, or to another thread.",
            False,
        )
    if abs(count[0] - usual) <= 0.02 * count[0]:
        return (
            "The same calls took longer: the processor or the device was busy with something else, or waited.",
            "Look for other processes, too many threads, late batches, memory that runs short; then measure again.",
            False,
        )
    return (
        f"The slowest step calls {count[0]:,} operators, the others {usual:,.0f}.",
        "See what it does in addition: a checkpoint, validation, a recompilation, a batch of another shape.",
        False,
    )
