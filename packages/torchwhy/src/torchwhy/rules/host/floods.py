"""Operators called again and again for little work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.host.tensor_loops import tensor_loops
from torchwhy.rules.host.tensor_texts import tensor_texts
from torchwhy.rules.host.weight_loops import weight_loops
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.host_activity import otherwise_engaged, outer_operators
from torchwhy.trace.derived.idle import at_stake
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.file.columns import Int32, Int64
from torchwhy.trace.meaning.annotations import OPTIMIZER
from torchwhy.trace.meaning.libraries import advice_for_loops
from torchwhy.trace.meaning.operators import BACKWARD, LOCAL_SCALAR, NUMBER_READ, VIEW
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.trace.tables.grouping import Groups
from torchwhy.wording import counted, duration_ns, percent, shortened

__all__ = ["dispatch_flood"]

_HELD_UP: Final = 10
"""A call waits for something else if it takes at least this many times the median of its operator."""

_VECTORS: Final = (
    "put the items into one tensor with a batch dimension and call it once; torch.vmap or torch._foreach_* do so"
)
_BATCH: Final = f"{_VECTORS[0].upper()}{_VECTORS[1:]} for lists; torch.compile fuses what must stay a loop."
_LOOP: Final = f"If it is a loop over items, {_VECTORS} for lists."


@rule("B4", "dispatch-flood", source="1000 calls as in TraceLens; `# Calls` of the profiler's table", frees="host")
def dispatch_flood(
    trace: Trace, *, per_step: int = 100, short_us: float = 20.0, share: float = 0.01
) -> Iterator[Finding]:
    """One operator is called again and again for little work each time.

    Sees: an operator called 100 times per step or more (1000 times where there are no steps) by the program itself, not
    from within another operator, each call taking less than 20 us (median). On a GPU counts the time it keeps the
    device waiting, on a CPU all of it: 1% of the window or more. Optimizers, compilation, the making of batches,
    texts made of tensors, loops over a tensor (tensor-for-loop) or over weights (weight-for-loop) and the nodes of
    the backward pass, which follow the forward pass, are left out.

    Costs: every call pays Python, dispatch and launch, mostly 5 to 20 us, however little it computes.

    Fix: one call for all items: a batch dimension, `torch.stack`, `vmap`, `torch._foreach_*`; one fused native call
    instead of one per section or file; or `torch.compile`.

    Known problems: calls that autograd makes in the backward pass aren't counted, though a loop in the forward pass
    brings as many.
    """
    rows = _own_calls(trace)
    if not len(rows):
        return
    events, window = trace.events, trace.derived(steady_window)
    steps = len(trace.steps_found)
    calls = Groups(events.name[rows])
    which, counts = calls.which, calls.count
    enough = per_step * steps if steps else 1000
    spent, usual = calls.sum(events.dur[rows]), calls.median(events.dur[rows])
    often = np.flatnonzero((counts >= max(enough, per_step)) & (usual < short_us * 1000))
    ordinary = events.dur[rows] <= np.maximum(_HELD_UP * usual[which], short_us * 1000)
    same = np.isin(which, often) & ordinary
    reach = _reach(trace, rows[same])
    taken = Intervals.union(*reach).clip(window.start, window.end)
    lost = at_stake(trace, taken)
    part = window.share(lost)
    if not len(often) or part < share:
        return
    best = int(often[spent[often].argmax()])
    best_row = int(rows[calls.first[best]])
    what = shortened(trace.name(best_row), 30)
    what = f"{what} and {counted(len(often) - 1, 'other')} are" if len(often) > 1 else f"{what} is"
    count = int(counts[often].sum())
    rate = f"{count / steps:,.0f} times per step" if steps else f"{count:,} times"
    waiting = "the device waits meanwhile for" if trace.has_gpu else "that takes"
    each = duration_ns(float(np.median(events.dur[rows[same]])))
    yield Finding(
        title=f"{what} called {rate} for {each} each (median); {waiting} {percent(part)} of the time",
        confidence="medium",
        stretches=taken,
        window=window,
        evidence=evidence(
            trace,
            rows[same],
            times=lost.overlap(*reach),
            note="while the device waits, with what lies between them" if trace.has_gpu else "",
        ),
        cause="A loop calls it for one item after another, where one call could take all of them."
        if len(often) == 1
        else "A loop over items, or a computation in many small operators.",
        fix=advice_for_loops(trace.name(best_row))
        or (_BATCH if len(often) == 1 else f"torch.compile fuses them. {_LOOP}"),
    )


def _own_calls(trace: Trace) -> Int32:
    """Operators the program itself calls, in steps, outside of optimizers."""
    events, rows = trace.events, trace.derived(outer_operators)
    rows = rows[trace.in_steps(rows) & ~events.are(BACKWARD | VIEW | NUMBER_READ | LOCAL_SCALAR, rows)]
    notes = events.of(OPTIMIZER)
    left_out = events.times_of(notes) | trace.derived(otherwise_engaged)
    left_out = left_out | trace.derived(tensor_loops).spans | trace.derived(tensor_texts).spans
    left_out = left_out | trace.derived(weight_loops).spans
    found: Int32 = rows[events.covered(rows, left_out) == 0]
    return found


def _reach(trace: Trace, rows: Int32) -> tuple[Int64, Int64]:
    """From where to where each call is answerable for what happens."""
    start, end = trace.events.ts[rows], trace.events.end[rows]
    if not trace.has_gpu:
        return start, end
    # From the end of the call before to the end of this one: what Python does between them belongs to the loop.
    before = np.concatenate((start[:1], end[:-1]))
    near = (start - before >= 0) & (start - before < 50_000)
    return np.where(near, before, start), end
