"""Training with few samples per step, whose time is the overhead of the calls."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import differentiated, forward_pass
from torchwhy.trace.derived.host_activity import outer_operators
from torchwhy.trace.derived.idle import at_stake
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.file.columns import Int32, Int64
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
"""The share of the overhead that a batch of eight times the size saves: it has the overhead of one step instead of
eight."""


OTHER_WORK_NS: Final = 1_000_000
"""Python code around the calls takes less, between two operators."""


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
    stake is for a batch eight times as large. Between an optimizer's step and the first product of the next pass an
    agent may act: where as many operators run there as in a pass, that time is not part of it. Neither is a
    millisecond or more without operators, as of a simulation: a larger batch needs more of it.
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
    training = whole - _acting(trace, _passes(trace, chosen, updates), whole) - _other_work(trace, whole)
    most = max(sizes)
    # A loop over samples, or over time steps, calls all layers as often: so often is the rarest call.
    times = Groups(events.name[chosen], events.text_ids("Input Dims", chosen)).count.min() / len(updates)
    loops = times >= LOOP
    does = f"calls its layers {times:,.0f} times with" if loops else "trains on"
    yield Finding(
        title=f"Each step {does} {counted(most, 'row')}: its {len(places) / len(updates):,.0f} products take "
        f"{percent(window.share(events.times_of(chosen)))} of the time",
        confidence="medium",
        time_us=training.total / 1000 * SAVED,
        stretches=training,
        window=window,
        evidence=evidence(trace, chosen),
        cause="With few rows in each call, the step's time is the overhead of its calls; more rows need no more calls.",
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


def _acting(trace: Trace, passes: Intervals, whole: Intervals) -> Intervals:
    """The stretches between passes in which as many operators run as in a pass."""
    outer = trace.derived(outer_operators)
    begins = np.sort(trace.events.ts[outer[trace.events.lane[outer] == trace.main_lane]])
    between = whole - passes

    def operators(when: Intervals) -> Int64:
        return np.searchsorted(begins, when.ends) - np.searchsorted(begins, when.starts)

    if not len(passes) or not len(between):
        return Intervals.union([], [])
    acts = operators(between) >= np.median(operators(passes))
    return Intervals(between.starts[acts], between.ends[acts])


def _other_work(trace: Trace, whole: Intervals) -> Intervals:
    """The long stretches in which no operator runs, on any thread."""
    pauses = whole - trace.events.times_of(trace.derived(outer_operators))
    long = pauses.lengths >= OTHER_WORK_NS
    return Intervals(pauses.starts[long], pauses.ends[long])


def _rows(taken: tuple[int, ...], *, convolves: bool) -> int:
    """How many rows a product computes: samples, or positions of samples."""
    return taken[0] * prod(taken[2:]) if convolves else prod(taken[:-1])
