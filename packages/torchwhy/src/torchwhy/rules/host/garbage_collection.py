"""Python's garbage collector."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.host.python_lines import host_work
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.host_activity import compiling, outer_operators
from torchwhy.trace.derived.processor_time import collecting_us, waited_share
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.annotations import GARBAGE_COLLECTION
from torchwhy.trace.meaning.frames import COLLECTING
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import duration_ns, often

__all__ = ["gc_pause"]


@rule("B14", "gc-pause", source="torch.profiler's record_python_gc_info", frees="host")
def gc_pause(
    trace: Trace, *, least_us: float = 1000.0, share: float = 0.01, automatic_share: float = 0.05
) -> Iterator[Finding]:
    """Python collects garbage within steps.

    Sees: events named `Python GC` (recorded on request) or frames of `gc.collect`, together 1 ms or more and 1% of the
    window. Those of the compiler are left out; without steps, so are collections without an operator between them,
    since they may belong to the set-up. Where `torchwhy profile` notes the processor time of collections, they count
    for no more than that: other programs may run meanwhile. Below 5%, collections that Python makes by itself are
    reported as information.

    Costs: the loop waits meanwhile; a full collection walks every object of the process.

    Fix: `gc.freeze()` after set-up, `gc.disable()` in the loop, and `gc.collect()` where no work waits; no
    `gc.collect()` per step. Without the collector, memory of objects that refer to each other stays in use: that is
    worth it only where collections take much of the time.

    Known problems: without Python stacks a call of `gc.collect()` looks like a collection Python makes by
    itself; one long pause in every step is taken for a call.
    """
    events = trace.events
    automatic, frames = events.of(GARBAGE_COLLECTION), events.of(COLLECTING)
    rows = np.concatenate((automatic, frames))
    rows = rows[trace.in_steps(rows)]
    rows = rows[events.covered(rows, trace.derived(compiling)) * 2 <= events.dur[rows]]
    if not trace.steps_found and _in_one_stretch(trace, rows):
        return
    window = trace.derived(steady_window)
    paused = events.times_of(rows).clip(window.start, window.end)
    spent = _counted_part(trace) * paused.total
    part = spent / (window.end - window.start) if window.end > window.start else 0.0
    if not len(rows) or spent < least_us * 1000 or part < share:
        return
    called = (events.times_of(frames) & paused).total * 2 > paused.total
    regular = not trace.has_stacks and not called and _one_in_each_step(trace, paused)
    if called:
        cause, fix = "The program calls gc.collect().", "Take gc.collect() out of the step; collect once per epoch."
    elif regular:
        cause = "One long collection in every step: the program probably calls gc.collect() in its loop."
        fix = "Take gc.collect() out of the step. Without it: gc.freeze() after set-up, gc.disable() in the loop."
    else:
        cause = "Python's cyclic collector runs when enough objects were made."
        fix = "gc.freeze() after set-up, gc.disable() in the loop, gc.collect() once per epoch."
        if (work := host_work(trace, paused, batch=True)) and work[1]:  # it makes most of the objects
            cause, fix = cause + work[1], f"{work[0].fix} Else: {fix}"
    yield Finding(
        title=f"Garbage collection stops the loop {often(len(paused))}, for {duration_ns(paused.total)} in all",
        severity="info" if part < automatic_share and not (called or regular) else "",
        confidence="high",
        time_us=spent / 1000,
        stretches=paused,
        window=window,
        evidence=evidence(trace, rows),
        cause=cause,
        fix=fix,
        linked=not regular,
    )


def _counted_part(trace: Trace) -> float:
    """The part of the collections' time that they would take if they waited for a processor as often as the rest."""
    noted, running = trace.derived(collecting_us), 1 - trace.derived(waited_share)
    whole = trace.events.times_of(trace.events.of(GARBAGE_COLLECTION)).total / 1000
    return 1.0 if noted is None or not whole or not running else min(noted / whole / running, 1.0)


def _in_one_stretch(trace: Trace, rows: Int32) -> bool:
    """Whether all lie before, after or between the same two operators of the main thread."""
    outer = trace.derived(outer_operators)
    begun = trace.events.ts[outer[trace.events.lane[outer] == trace.main_lane]]
    return len(np.unique(np.searchsorted(begun, trace.events.ts[rows]))) <= 1


def _one_in_each_step(trace: Trace, paused: Intervals) -> bool:
    """Whether in every step one pause takes most of the time paused there."""
    steps = trace.steps_found
    if len(steps) < 2:
        return False
    for step in steps:
        inside = paused.clip(step.start, step.end)
        if not len(inside) or int(inside.lengths.max()) * 2 <= inside.total:
            return False
    return True
