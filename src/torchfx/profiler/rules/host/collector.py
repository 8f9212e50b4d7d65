"""Python's garbage collector."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchfx.profiler.rules.evidence import evidence, severity_of
from torchfx.profiler.rules.finding import Finding
from torchfx.profiler.rules.rule import rule
from torchfx.profiler.trace.derived.occupation import compiling
from torchfx.profiler.trace.meaning.kinds import Kind
from torchfx.profiler.trace.model.intervals import Intervals
from torchfx.profiler.trace.model.trace import Trace
from torchfx.profiler.wording import duration_ns, often

__all__ = ["gc_pause"]


@rule("B14", "gc-pause", source="torch.profiler's record_python_gc_info")
def gc_pause(trace: Trace, *, least_us: float = 1000.0, share: float = 0.01) -> Iterator[Finding]:
    """Python collects garbage within steps.

    Sees: events named `Python GC` (recorded where the profiler is asked for them) or frames of `gc.collect`, together 1
    ms or more and 1% of the window. Those of the compiler are left out.

    Costs: the loop stands still meanwhile; a full collection walks every object of the process.

    Fix: `gc.freeze()` after set-up, `gc.disable()` in the loop, and `gc.collect()` where nobody waits; no
    `gc.collect()` per step.
    """
    events = trace.events
    automatic = events.find(r"(?i)(python )?gc$|garbage.?collect", Kind.OPERATOR, Kind.ANNOTATION, Kind.PYTHON)
    frames = events.find(
        r"<built-in (method|function) collect of module|<built-in function collect>|gc\.py.*collect", Kind.PYTHON
    )
    rows = np.concatenate((automatic, frames))
    rows = rows[trace.in_steps(rows)]
    rows = rows[trace.derived(compiling).overlap(events.ts[rows], events.end[rows]) * 2 <= events.dur[rows]]
    paused = Intervals.union(events.ts[rows], events.end[rows]).clip(trace.window.start, trace.window.end)
    length = trace.window.end - trace.window.start
    if not len(rows) or paused.total < max(least_us * 1000, share * length):
        return
    asked = Intervals.union(events.ts[frames], events.end[frames])
    called = (asked & paused).total * 2 > paused.total
    yield Finding(
        title=f"Garbage collection stops the loop {often(len(paused))}, for {duration_ns(paused.total)} in all",
        severity=severity_of(paused.total / length),
        confidence="high",
        time_us=paused.total / 1000,
        window=trace.window,
        evidence=evidence(trace, rows),
        cause="The program calls gc.collect()."
        if called
        else "Python's cyclic collector runs when enough objects were made.",
        fix="Take gc.collect() out of the step; collect once per epoch."
        if called
        else "gc.freeze() after set-up, gc.disable() in the loop, gc.collect() once per epoch.",
        linked=True,
    )
