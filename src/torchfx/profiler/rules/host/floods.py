"""Operators called again and again for little work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from torchfx.profiler.rules.evidence import evidence, severity_of
from torchfx.profiler.rules.finding import Finding
from torchfx.profiler.rules.host.slicing import slicing_loops
from torchfx.profiler.rules.host.views import VIEWS
from torchfx.profiler.rules.rule import rule
from torchfx.profiler.trace.derived.idle import idle_time
from torchfx.profiler.trace.derived.occupation import batch_waits, compiling, outer_operators
from torchfx.profiler.trace.file.columns import Int32, Int64
from torchfx.profiler.trace.meaning.kinds import Kind
from torchfx.profiler.trace.model.intervals import Intervals
from torchfx.profiler.trace.model.trace import Trace
from torchfx.profiler.wording import duration_ns, percent, shortened

__all__ = ["dispatch_flood"]

OUTSIDE: Final = r"Optimizer\."
"""Annotations whose loops other rules speak about."""


@rule(
    "B4",
    "dispatch-flood",
    source="1000 calls as in TraceLens; `# Calls` of the profiler's table",
)
def dispatch_flood(
    trace: Trace, *, per_step: int = 100, short_us: float = 20.0, share: float = 0.1
) -> Iterator[Finding]:
    """One operator is called again and again for little work each time.

    Sees: an operator called 100 times per step or more (1000 times where there are no steps) by the program itself, not
    from within another operator, each call taking less than 20 us on average. On a GPU counts the time it keeps the
    device waiting, on a CPU all of it: 10% of the window or more. Optimizers, compilation, the making of batches
    and loops over a tensor (tensor-for-loop) are left out.

    Costs: every call pays Python, dispatch and launch, mostly 5 to 20 us, however little it computes.

    Fix: one call for all items: a batch dimension, `torch.stack`, `vmap`, `torch._foreach_*`; one fused native call
    instead of one per section or file; or `torch.compile`.
    """
    rows = _own_calls(trace)
    if not len(rows):
        return
    events, length = trace.events, trace.window.end - trace.window.start
    steps = len(trace.steps_found)
    names, which, counts = np.unique(events.name[rows], return_inverse=True, return_counts=True)
    least = per_step * steps if steps else 1000
    spent = np.bincount(which, events.dur[rows].astype(np.float64))
    views = events.names_matching(VIEWS + r"|aten::(item|is_nonzero|_local_scalar_dense)$")[names]
    often = np.flatnonzero((counts >= max(least, per_step)) & (spent < short_us * 1000 * counts) & ~views)
    same = np.isin(which, often)
    cost = _cost(trace, rows[same])
    total = min(int(cost.sum()), length)
    if not len(often) or total < share * length:
        return
    best = int(often[spent[often].argmax()])
    name, count = events.texts[int(names[best])], int(counts[best])
    others = f" and {len(often) - 1} other" + ("s" if len(often) > 2 else "") if len(often) > 1 else ""
    rate = f"{count / steps:,.0f} x per step" if steps else f"{count:,} x"
    waiting = "the device waits" if trace.has_gpu else "that takes"
    each, part = duration_ns(spent[best] / count), total / length
    yield Finding(
        title=f"{shortened(name, 30)}{others}: called {rate} for {each} each; {waiting} {percent(part)} of the time",
        severity=severity_of(part),
        confidence="medium",
        time_us=total / 1000,
        window=trace.window,
        evidence=evidence(trace, rows[same], times=cost),
        cause="The program calls it in a loop, over items, channels, sections or layers, not once for all.",
        fix=_flood_fix(name),
    )


def _flood_fix(name: str) -> str:
    if name.startswith("torchfx_ext::"):
        return "Join the filters into one chain (a | b | c) before applying it: a fused chain is one native call."
    return (
        "Put the items into one tensor with a batch dimension and call it once; torch.vmap or torch._foreach_* do so "
        "for lists; torch.compile fuses what must stay a loop."
    )


def _own_calls(trace: Trace) -> Int32:
    """Operators the program itself calls, in steps, outside of optimizers."""
    rows = trace.derived(outer_operators)
    rows = rows[trace.in_steps(rows)]
    notes = trace.events.find(OUTSIDE, Kind.ANNOTATION)
    left_out = Intervals.union(trace.events.ts[notes], trace.events.end[notes])
    left_out = left_out | trace.derived(compiling) | trace.derived(batch_waits) | trace.derived(slicing_loops).spans
    found: Int32 = rows[left_out.overlap(trace.events.ts[rows], trace.events.end[rows]) == 0]
    return found


def _cost(trace: Trace, rows: Int32) -> Int64:
    """What these calls cost, nanoseconds each: their duration, or with a GPU the device's idle time until they end."""
    start, end = trace.events.ts[rows], trace.events.end[rows]
    if not trace.has_gpu:
        found: Int64 = end - start
        return found
    # From the end of the call before to the end of this one: what Python does between them belongs to the loop.
    before = np.concatenate((start[:1], end[:-1]))
    near = (start - before >= 0) & (start - before < 50_000)
    return trace.derived(idle_time).overlap(np.where(near, before, start), end)
