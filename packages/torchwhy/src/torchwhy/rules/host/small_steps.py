"""Steps of training that are too small for what calling their operators costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from torchwhy.finding import Evidence, Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.host.small_batches import SAVED, small_batches
from torchwhy.rules.host.tensor_loops import tensor_loops
from torchwhy.rules.host.tensor_texts import tensor_texts
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.cpu_communication import idle_exchanging
from torchwhy.trace.derived.host_activity import collections, otherwise_engaged, outer_operators, profiling
from torchwhy.trace.derived.recorded import recorded
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.meaning.annotations import OPTIMIZER_STEP
from torchwhy.trace.meaning.compiler import COMPILED_CODE
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.trace.tables.short_operators import short_operators
from torchwhy.wording import duration_ns, enumeration, percent

__all__ = ["small_steps"]

FRAME_NS: Final = 300
"""The cost of recording a Python frame, measured on a processor of 2025 with PyTorch 2.13: 130 to 300 ns."""


@rule(
    "B46",
    "small-steps",
    source="operators' own time against what a call of an operator costs, 2 to 10 us",
    frees="host",
)
def small_steps(
    trace: Trace, *, share: float = 0.5, operators: int = 200, pause_us: float = 100.0
) -> Iterator[Finding]:
    """A training step on the processor is all overhead: short operators, and the Python between them.

    Sees: without a GPU, an optimizer's steps with 200 operators or fewer that the program or the backward pass calls;
    those with less than 10 us of self time, and pauses between operators of up to 100 us, make up half of the window
    or more. Of Python stacks the time that recording them takes is left out; so are waits for batches, compilation and
    compiled code, and loops that other rules report (B17, B26).

    Costs: each call takes a few microseconds however little it computes, and Python as long to get to the next.

    Fix: a larger batch needs no more calls; `torch.compile` replaces the Python of a model by one call.

    Known problems: the time at stake is for a batch eight times as large, as in small-batches, which speaks for steps
    with one or a few samples. A program that must learn from small batches gains from `torch.compile` alone.
    """
    if not trace.derived(recorded).on_processor or any(small_batches.check(trace)):
        return
    events, window = trace.events, trace.derived(steady_window)
    updates = events.of(OPTIMIZER_STEP)
    updates = updates[events.begin_in(updates, window.start, window.end)]
    outer = trace.derived(outer_operators)
    outer = outer[events.begin_in(outer, window.start, window.end) & trace.in_steps(outer)]
    if not len(updates) or len(outer) > operators * len(updates) or events.any_of(COMPILED_CODE):
        return
    short = short_operators(trace)
    rows = events.rows(Kind.OPERATOR)
    inside = Intervals.union([window.start], [window.end])
    between = inside - events.times_of(rows)
    long_ = between.lengths > pause_us * 1000
    lost = inside - events.times_of(np.setdiff1d(rows, short)) - Intervals(between.starts[long_], between.ends[long_])
    lost = lost - trace.derived(otherwise_engaged) - trace.derived(collections) - trace.derived(idle_exchanging)
    lost = lost - trace.derived(profiling) - trace.derived(tensor_loops).spans - trace.derived(tensor_texts).spans
    frames = events.rows(Kind.PYTHON)
    recording = FRAME_NS * int(np.count_nonzero(lost.overlap(events.ts[frames], events.ts[frames] + 1)))
    spent = max(lost.total - recording, 0)
    part = spent / (window.end - window.start)
    if part < share:
        return
    own = (trace.derived(profiling) & inside).total
    parts = [f"the profiler's own Python ({duration_ns(own)})"] if own else []
    parts += [f"recording Python stacks (up to {duration_ns(recording)})"] if recording else []
    left_out = f" Not counted: {enumeration(parts)}." if parts else ""
    yield Finding(
        title=f"A step is too small for its overhead: {percent(part)} of the time goes to operators of less than 10 us "
        "and the Python between them",
        most="medium" if recording else "high",
        confidence="medium",
        time_us=spent / 1000 * SAVED,
        stretches=lost,
        window=window,
        evidence=(
            *evidence(trace, short, times=trace.calls.self_time[short], limit=3),
            Evidence("between operators", len(lost & between), (lost & between).total / 1000),
        ),
        cause=f"The {len(outer) / len(updates):,.0f} operators of a step have little to compute, and each costs a call."
        + left_out,
        fix="A larger batch needs no more calls; torch.compile(model) replaces the model's Python by one call.",
        linked=True,
    )
