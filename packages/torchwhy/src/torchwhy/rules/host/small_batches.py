"""Training with so few samples per step that the overhead of the calls is all there is."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import differentiated, forward_pass
from torchwhy.trace.derived.host_activity import batch_waits
from torchwhy.trace.derived.idle import at_stake
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.annotations import OPTIMIZER_STEP
from torchwhy.trace.meaning.arithmetic import CONVOLUTION, PRODUCT
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.trace.tables.grouping import Groups
from torchwhy.wording import counted, percent

__all__ = ["small_batches"]

LOOP: Final = 8
"""Calls of each layer in a step that are a loop."""

SAVED: Final = 7 / 8
"""Of eight steps' overhead one step's remains where a batch is eight times as large."""


@rule("B36", "small-batches", source="rows of matrix products, by shapes", frees="all")
def small_batches(
    trace: Trace, *, rows: int = 4, short_us: float = 100.0, products: int = 3, arithmetic: float = 0.25
) -> Iterator[Finding]:
    """A training step computes with one or a few samples.

    Sees: an optimizer's steps, and in the forward pass three matrix products or convolutions or more per step, all of
    which have four rows or fewer (a row is a sample, or a position of one). They take less than 100 us each (median),
    together less than a quarter of the window, and the device, where there is one, is idle for half of it.

    Costs: a call takes as long for one row as for dozens. A batch of 32 takes little longer than one sample, so an
    epoch takes up to 32 times longer than it could.

    Fix: a larger batch size (`DataLoader(..., batch_size=32)`, whose default is 1), or several samples stacked; with a
    learning rate to match.

    Known problems: training that must learn from one sample at a time, as online learning, has no batch. The time at
    stake is for a batch eight times as large: of the passes, from the first product to the end of the optimizer's step,
    and of the waits for batches. What a step does besides, as an agent that acts, is not part of it.
    """
    events, window, program = trace.events, trace.derived(steady_window), trace.derived(forward_pass)
    updates = events.of(OPTIMIZER_STEP)
    updates = updates[events.begin_in(updates, window.start, window.end)]
    places = np.flatnonzero(events.are(PRODUCT | CONVOLUTION, program.rows) & differentiated(trace, program.rows))
    if not len(updates) or len(places) < products * len(updates):
        return
    convolves = events.are(CONVOLUTION, program.rows)
    sizes = [_rows(program.shapes[i][0], convolves=bool(convolves[i])) for i in places.tolist() if program.shapes[i]]
    chosen = program.rows[places]
    short = float(np.median(events.dur[chosen])) <= short_us * 1000
    if not sizes or max(sizes) > rows or not short or window.share(events.times_of(chosen)) > arithmetic:
        return
    whole = Intervals.union([window.start], [window.end])
    if 2 * at_stake(trace, whole).total < whole.total:
        return
    passes = _passes(trace, chosen, updates) | trace.derived(batch_waits)
    passes = passes.clip(window.start, window.end)
    most = max(sizes)
    # A loop over samples, or over time steps, calls all layers as often: so often is the rarest call.
    times = Groups(events.name[chosen], events.text_ids("Input Dims", chosen)).count.min() / len(updates)
    loops = times >= LOOP
    does = f"calls its layers {times:,.0f} times with" if loops else "trains on"
    yield Finding(
        title=f"Each step {does} {counted(most, 'row')}: its {len(places) / len(updates):,.0f} products take "
        f"{percent(window.share(events.times_of(chosen)))} of the time",
        confidence="medium",
        time_us=passes.total / 1000 * SAVED,
        stretches=passes,
        window=window,
        evidence=evidence(trace, chosen),
        cause="With so few rows in each call a step is the overhead of its calls; more rows need no more calls.",
        fix="Give the layers all rows of the step at once; for gradients of each sample: "
        "torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0)). Steps in time need a larger batch of sequences."
        if loops
        else "Use a larger batch size, such as DataLoader(..., batch_size=32), and adapt the learning rate.",
    )


def _passes(trace: Trace, products: Int32, updates: Int32) -> Intervals:
    """From the first product after one optimizer step to the end of the next one, in each step."""
    events = trace.events
    begins, ends = np.sort(events.ts[products]), np.sort(events.end[updates])
    first = np.searchsorted(begins, np.append(np.int64(events.ts[products].min()), ends[:-1]))
    known = first < len(begins)
    starts, ends = begins[first[known]], ends[known]
    return Intervals.union(starts[starts < ends], ends[starts < ends])


def _rows(taken: tuple[int, ...], *, convolves: bool) -> int:
    """How many rows a product computes: samples, or positions of samples."""
    return taken[0] * prod(taken[2:]) if convolves else prod(taken[:-1])
