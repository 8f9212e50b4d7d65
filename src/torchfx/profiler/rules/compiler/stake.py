"""What the rules about torch.compile share: which host time matters, and how to say it."""

from __future__ import annotations

from torchfx.profiler.trace.derived.compiled import compiled_of
from torchfx.profiler.trace.derived.idle import idle_time
from torchfx.profiler.trace.meaning.compiler import ENTERING
from torchfx.profiler.trace.meaning.kinds import Kind
from torchfx.profiler.trace.model.intervals import Intervals
from torchfx.profiler.trace.model.trace import Trace

__all__ = ["at_stake", "broken_off", "entry_overhead", "step_names"]


def at_stake(trace: Trace, spent: Intervals) -> Intervals:
    """The part of some host time that counts: within the window and, with a device, while that has nothing to do."""
    return spent & trace.derived(idle_time) if trace.has_gpu else spent.clip(trace.window.start, trace.window.end)


def entry_overhead(trace: Trace) -> Intervals:
    """Time on the way into compiled graphs and out of them: lookups and regions without graphs and operators."""
    compiled = trace.derived(compiled_of)
    events = trace.events
    rows = events.rows(Kind.OPERATOR, Kind.RUNTIME)
    working = rows[~events.are(ENTERING, rows)]
    work = events.times_of(working)
    graphs = events.times_of(compiled.graphs)
    lookups = events.times_of(compiled.lookups)
    return (compiled.running | lookups) - work - graphs - compiled.compiling


def broken_off(trace: Trace) -> Intervals:
    """When regions inside regions ran, which graph breaks make; the lookups before them included."""
    compiled, events = trace.derived(compiled_of), trace.events
    nested, lookups = compiled.regions[compiled.outer >= 0], compiled.lookups
    # The lookup before a piece belongs to it: it lies in the region around, like the piece itself.
    within = compiled.running.overlap(events.ts[lookups], events.end[lookups]) > 0
    return events.times_of(nested[trace.in_steps(nested)]) | events.times_of(lookups[within])


def step_names(trace: Trace, moments: list[int]) -> list[str]:
    """The names of the steps in which these moments lie, each once, in order."""
    return [s.name for s in trace.steps_found if any(s.start <= moment < s.end for moment in moments)]
