"""The way into compiled code: what each call costs before and after the graph itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.compiled import broken_off, compiled_of, entry_overhead
from torchwhy.trace.derived.idle import at_stake
from torchwhy.trace.derived.steady_state import typical
from torchwhy.trace.file.columns import Int32, Int64
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import counted, duration, percent

__all__ = ["compile_overhead", "lookup_cost"]


SCATTERED: Final = 3.0
"""The longest entry over the shortest; beyond it no single figure says what entering costs."""


@rule(
    "E5",
    "compile-overhead",
    source="time of regions and lookups outside their graphs; half of it, and 10% of the window",
    needs={"host"},
    frees="host",
)
def compile_overhead(trace: Trace, *, part: float = 0.5, share: float = 0.1) -> Iterator[Finding]:
    """Entering the compiled code costs more than running it.

    Sees: of the time in `TorchDynamo Cache Lookup` and `Torch-Compiled Region`, the part outside
    `## Call CompiledFxGraph` and outside operators: guards, prologue, bytecode, wrappers. Fires where that is more
    than half, and a tenth of the window; with a GPU only while it has no work. Compilations are left out, and so are
    calls in pieces, whose breaks must be removed first (graph-breaks). The time per call is the median; calls that
    differ much are given with their range.

    Costs: some 20 to 100 microseconds per call, whatever the graph does.

    Fix: compile the larger function around this one, so that it is entered once; or do more per call. For code this
    small the uncompiled function may be faster: compare both.

    Known problems: the profiler's own cost per event is a good part of entries this short; measure both variants
    without it.
    """
    compiled = trace.derived(compiled_of)
    if not len(compiled.graphs) or not len(compiled.regions):
        return
    events = trace.events
    lookups = events.times_of(compiled.lookups)
    whole = ((compiled.running | lookups) - compiled.compiling).clip(trace.window.start, trace.window.end)
    overhead = trace.derived(entry_overhead).clip(trace.window.start, trace.window.end)
    lost = at_stake(trace, overhead)
    entries = compiled.regions[(compiled.outer < 0) & trace.in_steps(compiled.regions)]
    start, end = _entered(trace, entries), events.end[entries]
    unbroken = trace.derived(broken_off).overlap(start, end) == 0
    entries, start, end = entries[unbroken], start[unbroken], end[unbroken]
    each = lost.overlap(start, end)
    # An entry that took far longer than the others was interrupted; it says nothing about what entering costs.
    usual = np.minimum(each, 3 * int(np.median(each)) if len(each) else 0)
    total = min(int(usual.sum()), lost.total) / 1000  # entries of several threads may overlap
    taken = total / trace.window.us if trace.window.us else 0.0
    if overhead.total <= part * whole.total or not len(each) or taken < share:
        return
    least, usual_us, most = (float(value(each)) / 1000 for value in (np.min, np.median, np.max))
    scattered = most > SCATTERED * max(least, 0.001)
    gpu = ' mode="reduce-overhead" replays it as one CUDA graph where shapes are fixed.' if trace.has_gpu else ""
    yield Finding(
        title=f"Getting into compiled code takes {percent(taken)} of the time: "
        f"{'median ' if len(each) > 1 else ''}{duration(usual_us)} in {counted(len(entries), 'call')}",
        most="medium" if scattered else "high",
        confidence="low" if scattered else "medium",
        time_us=total,
        window=trace.window,
        evidence=evidence(trace, entries, times=usual, note="entering it, with the lookup before it"),
        cause=f"The graphs are small: {percent(overhead.total / whole.total)} of the time in compiled regions passes "
        "outside them, in guards, prologue and wrappers."
        + (f" The calls take from {duration(least)} to {duration(most)}." if scattered else "")
        + _cached(compiled.found_in_cache),
        fix="Compile the function around it, so that more runs per entry, or compare with the uncompiled one." + gpu,
    )


@rule(
    "E9",
    "lookup-cost",
    source="`TorchDynamo Cache Lookup`, healthy at 1 to 60 us; 50 us and 3% of the window",
    needs={"host"},
    frees="host",
)
def lookup_cost(trace: Trace, *, lookup_us: float = 50.0, share: float = 0.03) -> Iterator[Finding]:
    """Finding the compiled code for a call takes long.

    Sees: the median `TorchDynamo Cache Lookup` and their time together, with a GPU only while it has no work.

    Costs: every guard of every variant of the function is checked on each call, until one variant fits.

    Fix: fewer variants (see hash-churn), smaller closures and fewer module attributes in what is compiled. With inputs
    that never vary, torch.compiler.set_stance(skip_guard_eval_unsafe=True) checks only what distinguishes variants.

    Known problems: the profiler lengthens short lookups; below some 50 us the figure is mostly its own.
    """
    compiled = trace.derived(compiled_of)
    rows = compiled.lookups[trace.in_steps(compiled.lookups)]
    if len(rows) < 2 or float(np.median(trace.events.dur[rows])) < lookup_us * 1000:
        return
    usual = typical(trace, at_stake(trace, trace.events.times_of(rows) - compiled.compiling), trace.window)
    lost = usual.when
    if usual.share < share:
        return
    median = float(np.median(trace.events.dur[rows])) / 1000
    variants = int(compiled.version.max()) + 1 if len(compiled.version) else 0
    many = f" There are up to {variants} variants of a function to look through." if variants > 1 else ""
    yield Finding(
        title=f"Lookups of compiled code take {percent(usual.share)} of the time, {duration(median)} each (median)",
        confidence="high",
        stretches=lost,
        window=trace.window,
        evidence=evidence(trace, rows, times=trace.events.covered(rows, lost)),
        cause="Each call checks the guards of the compiled code: sizes, types, attributes, globals." + many,
        fix="Compile a smaller part, with fewer objects to guard, or one that varies less; as a last resort "
        "torch.compiler.set_stance(skip_guard_eval_unsafe=True) once all variants exist.",
        linked=True,
    )


def _cached(hits: int) -> str:
    """Say that compilation has ended, where that is so."""
    return f" All {hits:,} lookups find compiled code, so nothing of this is compilation." if hits else ""


def _entered(trace: Trace, regions: Int32) -> Int64:
    """When each region's call began: with the lookup right before it on its thread, or with the region itself."""
    events, lookups = trace.events, trace.derived(compiled_of).lookups
    start = events.ts[regions]
    if not len(lookups):
        return start
    i = np.maximum(np.searchsorted(events.end[lookups], start, "right") - 1, 0)
    before = lookups[i]
    near = (events.lane[before] == events.lane[regions]) & (events.end[before] <= start)
    near &= start - events.end[before] < 1_000_000
    found: Int64 = np.where(near, events.ts[before], start)
    return found
