"""Time in which the program computes nothing, between and within steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from torchfx.profiler.rules.evidence import evidence, severity_of
from torchfx.profiler.rules.finding import Evidence, Finding
from torchfx.profiler.rules.rule import rule
from torchfx.profiler.trace.derived.exchanging import idle_exchanging
from torchfx.profiler.trace.derived.gaps import Cause, idle_gaps
from torchfx.profiler.trace.derived.idle import idle_time
from torchfx.profiler.trace.derived.launching import device_known
from torchfx.profiler.trace.derived.occupation import batch_waits, compiling, host_during
from torchfx.profiler.trace.meaning.kinds import Kind
from torchfx.profiler.trace.model.intervals import Intervals
from torchfx.profiler.trace.model.steps import Step
from torchfx.profiler.trace.model.trace import Trace
from torchfx.profiler.wording import duration_ns, percent

__all__ = ["between_steps_gap"]

HOUSEKEEPING: Final = (
    r"(?i:\W*(log(ging)?|checkpoint(ing)?|save_?(checkpoint|model|state)?|metrics?|eval(uate|uation)?"
    r"|valid(ate|ation)?|callbacks?|tensorboard|wandb)\W*$)"
)


@rule(
    "B13",
    "between-steps-gap",
    source="TraceML's residual: 10% of the step outside of forward, backward and optimizer",
)
def between_steps_gap(trace: Trace, *, share: float = 0.1, long_us: float = 500.0) -> Iterator[Finding]:
    """The program does something else than computing, between or within its steps.

    Sees: time between one step and the next; annotations named after housekeeping (log, checkpoint, metrics,
    validation); and stretches of 500 us or more of the main thread without operator, call or annotation. With a GPU
    only what leaves it idle with nothing queued, for 250 us or more at a time. 10% of the window. Waiting for batches
    and compilation are left out.

    Costs: that time, in every round it happens.

    Fix: log, save, and evaluate less often, or in another thread or process; prepare inputs in the DataLoader's
    workers.
    """
    steps = trace.steps_found
    if not steps or trace.main_lane < 0 or not trace.derived(device_known):
        return
    if not trace.has_gpu and not len(trace.events.rows(Kind.OPERATOR, Kind.RUNTIME, Kind.PYTHON)):
        return  # what computes are threads of the program's own, which weren't recorded
    lost = _elsewhere(trace, steps, int(long_us * 1000))
    lost = lost - trace.derived(batch_waits) - trace.derived(compiling) - trace.derived(idle_exchanging)
    if trace.has_gpu:
        lost = lost & trace.derived(idle_gaps).intervals(Cause.HOST, Cause.END) & trace.derived(idle_time)
        whole = lost.lengths * 2 >= long_us * 1000
        lost = Intervals(lost.starts[whole], lost.ends[whole])
    total, length = lost.total, trace.window.end - trace.window.start
    if not length or total < share * length:
        return
    longest = int(np.argmax(lost.lengths))
    rows, times = host_during(trace, int(lost.starts[longest]), int(lost.ends[longest]))
    idle = " while the device is idle" if trace.has_gpu else ""
    stretch = duration_ns(lost.lengths.max())
    yield Finding(
        title=f"{percent(total / length)} of the time the program computes nothing{idle}; longest stretch {stretch}",
        severity=severity_of(total / length),
        confidence="medium",
        time_us=total / 1000,
        window=trace.window,
        evidence=evidence(trace, rows, times=times, note="during the longest stretch")
        or (Evidence("no operator, call or annotation", len(lost), total / 1000, int(lost.starts[longest]) / 1000),),
        cause="Python computes, reads or writes files, prints, sleeps, or waits for threads of its own, whose "
        "operators are recorded with profile_all_threads only; the profiler doesn't see it."
        if not trace.has_stacks
        else "Python code outside of any operator; the frames in the evidence say which.",
        fix=(
            "Prepare inputs in the DataLoader's workers, log and save less often or in another thread. To see which "
            "code it is, put torch.profiler.record_function around its parts or record with_stack=True."
            if not trace.has_stacks
            else "Move that code off the loop: into the DataLoader's workers, another thread, or every N-th step."
        ),
    )


def _elsewhere(trace: Trace, steps: Sequence[Step], least: int) -> Intervals:
    """When the main thread was in no operator, call or annotation, each stretch of at least `least` nanoseconds."""
    events, window = trace.events, trace.window
    rows = events.rows(Kind.OPERATOR, Kind.ANNOTATION, Kind.RUNTIME)
    step = events.names_matching(r"ProfilerStep|" + HOUSEKEEPING)[events.name[rows]] & (
        events.kind[rows] == Kind.ANNOTATION
    )
    inferred = np.isin(rows, [s.row for s in steps])
    # Annotations count by what is inside them, unless nothing is: then they say what is done, which is no riddle.
    hollow = (events.kind[rows] == Kind.ANNOTATION) & (trace.calls.sizes[rows] > 0)
    work = rows[~step & ~inferred & ~hollow]
    active = Intervals.union(events.ts[work], events.end[work])
    free = Intervals.union([min(s.start for s in steps)], [max(s.end for s in steps)]) - active
    free = free.clip(window.start, window.end)
    long_ = free.lengths >= least
    found = Intervals(free.starts[long_], free.ends[long_])
    house = events.find(HOUSEKEEPING, Kind.ANNOTATION)
    house = house[trace.in_steps(house) | (events.lane[house] == trace.main_lane)]
    return (found | Intervals.union(events.ts[house], events.end[house])).clip(window.start, window.end)
