"""Python between operators."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchfx.profiler.rules.evidence import evidence, severity_of
from torchfx.profiler.rules.finding import Evidence, Finding
from torchfx.profiler.rules.rule import rule
from torchfx.profiler.trace.exchanging import idle_exchanging
from torchfx.profiler.trace.intervals import Intervals
from torchfx.profiler.trace.kinds import Kind
from torchfx.profiler.trace.occupation import batch_waits, compiling, outer_operators
from torchfx.profiler.trace.trace import Trace
from torchfx.profiler.wording import duration_ns, percent

__all__ = ["python_bound"]


@rule(
    "B24",
    "python-bound",
    source="time between operators on the loop's thread",
    needs=("host",),
)
def python_bound(trace: Trace, *, share: float = 0.4, operators: int = 50, long_us: float = 500.0) -> Iterator[Finding]:
    """Most of the time passes between operators, in Python.

    Sees: on the loop's thread, the gaps between one operator or call and the next, each shorter than 500 us: 40% of
    the window or more, over 50 operators at least. With a GPU only what lies in the device's idle time. Waits for
    batches and compilation don't count, nor do traces with Python stacks, whose recording takes time just there.

    Costs: the interpreter, the model's Python code, and argument parsing, which run between operators.

    Fix: `torch.compile` replaces the Python of a model by one call; else fewer and larger operators, and less work per
    item in Python.
    """
    events = trace.events
    outer = trace.derived(outer_operators)
    outer = outer[(events.lane[outer] == trace.main_lane) & trace.in_steps(outer)]
    if len(outer) < operators or trace.has_stacks:
        return
    calls = events.rows(Kind.RUNTIME)
    calls = calls[events.lane[calls] == trace.main_lane]
    rows = np.concatenate((outer, calls))
    other = [events.rows(Kind.OPERATOR)]  # other threads (backward): then the main one waits
    active = Intervals.union(events.ts[rows], events.end[rows]) | Intervals.union(
        events.ts[other[0]], events.end[other[0]]
    )
    between = active.gaps()
    short = between.lengths < long_us * 1000
    lost = Intervals(between.starts[short], between.ends[short]).clip(trace.window.start, trace.window.end)
    lost = lost - trace.derived(batch_waits) - trace.derived(compiling) - trace.derived(idle_exchanging)
    lost = lost & trace.idle if trace.has_gpu else lost
    total, length = lost.total, trace.window.end - trace.window.start
    if not length or total < share * length:
        return
    compiled = len(events.find(r"Torch-Compiled Region", Kind.OPERATOR, Kind.ANNOTATION)) > 0
    each = duration_ns(total / len(outer))
    yield Finding(
        title=f"{percent(total / length)} of the time passes in Python between operators, {each} before each",
        severity=severity_of(total / length),
        confidence="medium",
        time_us=total / 1000,
        window=trace.window,
        evidence=(
            Evidence("between operators", len(lost), total / 1000, int(lost.starts[0]) / 1000),
            *evidence(trace, outer, limit=3, note="operators called"),
        ),
        cause="The operators are short, and the interpreter needs as long to get from one to the next.",
        fix="Compile larger parts (torch.compile with fewer graph breaks), and give each operator more data."
        if compiled
        else "torch.compile replaces the model's Python by one call; larger batches make each operator worth its call.",
    )
