"""Python loops over a tensor: over its slices, its rows, its elements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.host.python_lines import library_there
from torchwhy.rules.host.tensor_texts import tensor_texts
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.host_activity import otherwise_engaged, outer_operators
from torchwhy.trace.derived.idle import at_stake
from torchwhy.trace.derived.shapes import shapes
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.file.columns import Int32, Int64
from torchwhy.trace.meaning.operators import (
    AUTOGRAD_NODE,
    MODULE_OF_CELL,
    NONZERO,
    NUMBER_READ,
    PICK,
    RECURRENT_CELL,
    SLICE,
    UNBIND,
    VIEW,
)
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import enumeration, percent

__all__ = ["TensorLoops", "tensor_for_loop", "tensor_loops"]

TIMES: Final = 10
"""At least this number of slices in a row makes a loop; PyTorch's own pattern matcher used the same number."""

APART_NS: Final = 50_000_000
"""Slices further apart belong to two loops; a thread that was taken off its processor is back before."""

LONGEST_ROUND: Final = 500
"""Operators in one round of a loop over the rows of a tensor, at most."""

_ONE_BY_ONE: Final = "The loop takes one slice after another out of a tensor and calls operators on each."
_WHOLE: Final = (
    "Compute on the whole tensor (broadcasting, batched operators, torch.vmap). Where a round needs the one before: "
    "nn.GRU or nn.LSTM, a cumulative operator, or torch.compile. Compute what is the same in each step (a mask, a "
    "filter bank) once, before the loop."
)


@dataclass(frozen=True)
class TensorLoops:
    """Loops over a tensor, an entry each.

    Attributes:
        first, last: rows of the first and the last operator.
        rounds: how many slices or rows are taken; a round may take several.
        reads: whether hardly more is done in a round than to read a number.
        spans: from the first to the last operator, all loops together.
        calls: rows of the operators in loops, all of them outermost.
    """

    first: Int32
    last: Int32
    rounds: Int64
    reads: npt.NDArray[np.bool_]
    spans: Intervals
    calls: Int32

    def within(self, trace: Trace, *, reads: bool) -> Intervals:
        """When the loops ran that read numbers, or those that compute."""
        chosen = self.reads == reads
        return Intervals.union(trace.events.ts[self.first[chosen]], trace.events.end[self.last[chosen]])


def tensor_loops(trace: Trace) -> TensorLoops:
    """Find loops of the program's own over slices or rows, at least `TIMES` rounds each.

    Texts made of tensors, the making of batches, and the backward pass are left out.
    """
    events = trace.events
    rows = trace.derived(outer_operators)
    left_out = trace.derived(otherwise_engaged) | trace.derived(tensor_texts).spans
    rows = rows[trace.in_steps(rows) & ~events.are(AUTOGRAD_NODE, rows)]
    rows = rows[events.covered(rows, left_out) == 0]
    found = [*_over_slices(trace, rows), *_over_rows(trace, rows)]
    first, last, rounds = np.array(found, np.int64).reshape(-1, 3).T
    reads = np.concatenate(([0], np.cumsum(events.are(NUMBER_READ, rows))))
    moves = np.concatenate(([0], np.cumsum(events.are(PICK | VIEW | NUMBER_READ, rows))))
    count, other = reads[last + 1] - reads[first], (last + 1 - first) - (moves[last + 1] - moves[first])
    spans = Intervals.union(events.ts[rows[first]], events.end[rows[last]])
    inside = events.covered(rows, spans) > 0
    reading = (2 * count >= rounds) & (2 * other <= rounds)
    return TensorLoops(rows[first], rows[last], rounds, reading, spans, rows[inside])


def _over_slices(trace: Trace, rows: Int32) -> list[tuple[int, int, int]]:
    """Slices of one shape, at most eight other calls and `APART_NS` apart: first and last position, how many."""
    events = trace.events
    at = np.flatnonzero(events.are(PICK, rows))
    shape = events.text_ids("Input Dims", rows[at])
    order = np.lexsort((at, shape))  # x[i, j] takes slices of two shapes in turn
    at, shape = at[order], shape[order]
    owner, lane = trace.calls.parent[rows[at]], events.lane[rows[at]]
    together = (np.diff(at) <= 9) & (np.diff(shape) == 0) & (np.diff(owner) == 0) & (np.diff(lane) == 0)
    together &= np.diff(events.ts[rows[at]]) <= APART_NS
    borders = np.concatenate(([0], np.flatnonzero(~together) + 1, [len(at)]))
    return [(int(at[a]), int(at[b - 1]), int(b - a)) for a, b in pairwise(borders) if b - a >= TIMES]


def _over_rows(trace: Trace, rows: Int32) -> list[tuple[int, int, int]]:
    """Loops over all rows of a tensor, which one call of `unbind` takes: its position, the last round's, and how many.

    The rounds need not be alike. They follow the call, and begin with an operator that comes as often as there are
    rows.
    """
    events, parent = trace.events, trace.calls.parent
    picks = events.of(PICK)
    inner = np.bincount(parent[picks][parent[picks] >= 0], minlength=len(events) + 1)
    starts = np.flatnonzero(events.are(UNBIND, rows) & (inner[rows] >= TIMES))
    stops = np.append(starts, len(rows))[1:]
    step = trace.step_of(rows)
    found = []
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        size = int(inner[rows[start]])
        follow = np.arange(start + 1, min(stop, start + 1 + size * LONGEST_ROUND))
        same = (events.lane[rows[follow]] == events.lane[rows[start]]) & (step[follow] == step[start])
        follow = follow[: int(np.argmin(same)) if not same.all() else len(same)]
        names = events.name[rows[follow]]
        often = {int(name): int(np.count_nonzero(names == name)) for name in np.unique(names[:8])}
        enough = {name: count for name, count in often.items() if count >= max(TIMES, size // 2)}
        if not enough:
            continue
        begins = np.flatnonzero(names == min(enough, key=lambda name: enough[name]))
        begins = begins[:: max(len(begins) // size, 1)][:size]
        length = int(np.median(np.diff(begins)))
        last = min(int(begins[-1]) + length, len(follow)) - 1
        found.append((start, int(follow[last]), len(begins)))
    return found


@rule(
    "B17",
    "tensor-for-loop",
    source="torch.profiler's pattern matcher, for-loop indexing: 10 selects with one parent",
    frees="host",
)
def tensor_for_loop(trace: Trace, *, short_us: float = 100.0, share: float = 0.05) -> Iterator[Finding]:
    """A Python loop iterates over a tensor.

    Sees: ten or more `aten::select`, `slice`, `index` or `unbind` calls of the program itself, of one shape, at most
    eight other calls apart; or one `unbind` of ten or more rows (`for row in batch`) and as many rounds after it. The
    time from the first to the last operator is 5% of the window or more; on a GPU only the part during which the device
    waits. Operators of more than 100 us (median) are work that is worth its call. Loops that only read numbers are
    item-per-step's, texts made of tensors tensors-to-text's. Where half of the slices or more are read by a mask, they
    differ in length, and no operator takes them together: the rule is silent, as it is where most samples show another
    library at work, such as one that draws each slice.

    Costs: each round pays Python and dispatch for a slice of the data. In training the backward pass pays once more.

    Fix: compute on the whole tensor: a batched operator, broadcasting, `torch.vmap`, `unfold` for windows. Where a
    round needs the one before: `nn.GRU`, `nn.LSTM`, a cumulative sum, or `torch.compile`; for a loop over `nn.GRUCell`
    and similar cells, the finding names the module for the whole sequence. Compute what is the same in each step, such
    as a mask, once.

    Known problems: whether a round needs the one before is recorded of recurrent cells alone, so for others the advice
    names both cases. The backward pass of the loop isn't counted.
    """
    loops, window = trace.derived(tensor_loops), trace.derived(steady_window)
    chosen = ~loops.reads
    inside = loops.within(trace, reads=False).clip(window.start, window.end)
    lost = at_stake(trace, inside)
    part = window.share(lost)
    if not len(lost) or part < share:
        return
    longest = int(loops.rounds[chosen].max())
    calls = loops.calls[trace.events.covered(loops.calls, inside) > 0]
    taken = trace.events.are(PICK, calls)
    if (~taken).any() and float(np.median(trace.events.dur[calls[~taken]])) > short_us * 1000:
        return
    if _differ_in_length(trace, calls) or library_there(trace, inside):
        return
    shown = evidence(trace, calls[taken], limit=2), evidence(trace, calls[~taken], limit=3)
    cells = calls[trace.events.are(RECURRENT_CELL, calls)]
    recurs = 2 * trace.events.dur[cells].sum() > trace.events.dur[calls[~taken]].sum()
    cause, fix = _recurrence(trace, cells) if recurs else (_ONE_BY_ONE, _WHOLE)
    yield Finding(
        title=f"A Python loop takes up to {longest:,} slices of a tensor one by one: {percent(part)} of the time",
        confidence="medium",
        stretches=inside,
        window=window,
        evidence=(*shown[1], *shown[0]) if recurs else (*shown[0], *shown[1]),
        cause=cause,
        fix=fix,
    )


def _differ_in_length(trace: Trace, calls: Int32) -> bool:
    """Whether a mask chooses elements of half of the slices that are taken, or more."""
    events, parent = trace.events, trace.calls.parent
    found = events.of(NONZERO)
    masked = np.intersect1d(calls, parent[found])
    slices = calls[events.are(SLICE, calls)]
    if not len(masked) or not len(slices):
        return False
    whole = {taken[0] for row in slices.tolist() if (taken := shapes(trace, row))}
    made = {shape[:k] + shape[k + 1 :] for shape in whole for k in range(len(shape))}
    of_slices = [row for row in masked.tolist() if (taken := shapes(trace, row)) and taken[0] in made]
    return 2 * len(of_slices) >= len(slices)


def _recurrence(trace: Trace, cells: Int32) -> tuple[str, str]:
    """Cause and fix of a loop over the cells of recurrent networks."""
    kinds = sorted({MODULE_OF_CELL[trace.name(row)] for row in cells.tolist()})
    called = enumeration([f"nn.{kind}Cell" for kind in kinds])
    return (
        f"The loop calls {called} for one time step after another, each of which needs the result of the one before.",
        f"Call {enumeration([f'nn.{kind}' for kind in kinds])} once, with the whole sequence: it computes the same "
        "with weights of the same shapes. Where the input of a time step is made of the result before it, compile "
        "the loop (torch.compile).",
    )
