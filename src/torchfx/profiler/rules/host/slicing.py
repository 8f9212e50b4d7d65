"""Python loops over the slices of a tensor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from torchfx.profiler.rules.evidence import evidence, severity_of
from torchfx.profiler.rules.finding import Finding
from torchfx.profiler.rules.rule import rule
from torchfx.profiler.trace.derived.idle import idle_time
from torchfx.profiler.trace.derived.occupation import batch_waits, compiling, outer_operators
from torchfx.profiler.trace.file.columns import Int32
from torchfx.profiler.trace.model.intervals import Intervals
from torchfx.profiler.trace.model.trace import Trace
from torchfx.profiler.wording import percent

__all__ = ["SlicingLoops", "slicing_loops", "tensor_for_loop"]


PICKS: Final = r"aten::(select|slice|index|narrow|unbind)$"

TIMES: Final = 10
"""So many slices in a row make a loop; PyTorch's own pattern matcher used the same number."""


@dataclass(frozen=True)
class SlicingLoops:
    """Loops over slices of a tensor.

    Attributes:
        rows: the calls that take the slices.
        spans: from the first to the last slice of each loop.
        longest: rounds of the longest one.
    """

    rows: Int32
    spans: Intervals
    longest: int


def slicing_loops(trace: Trace) -> SlicingLoops:
    """Find `TIMES` or more slices of one shape, taken by the program itself, at most eight other calls apart."""
    events = trace.events
    rows = trace.derived(outer_operators)
    loading = trace.derived(batch_waits).overlap(events.ts[rows], events.end[rows])
    rows = rows[trace.in_steps(rows) & (loading == 0)]
    at = np.flatnonzero(events.names_matching(PICKS)[events.name[rows]])
    shape = events.text_ids("Input Dims", rows[at])
    order = np.lexsort((at, shape))  # x[i, j] takes slices of two shapes in turn
    at, shape = at[order], shape[order]
    owner, lane = trace.calls.parent[rows[at]], events.lane[rows[at]]
    together = (np.diff(at) <= 9) & (np.diff(shape) == 0) & (np.diff(owner) == 0) & (np.diff(lane) == 0)
    borders = np.concatenate(([0], np.flatnonzero(~together) + 1, [len(at)]))
    runs = [(int(a), int(b)) for a, b in pairwise(borders) if b - a >= TIMES]
    chosen = rows[np.concatenate([at[a:b] for a, b in runs])] if runs else rows[:0]
    first, last = (
        rows[[at[a] for a, _ in runs]] if runs else rows[:0],
        rows[[at[b - 1] for _, b in runs]] if runs else rows[:0],
    )
    spans = Intervals.union(events.ts[first], events.end[last])
    return SlicingLoops(chosen, spans, max((b - a for a, b in runs), default=0))


@rule(
    "B17",
    "tensor-for-loop",
    source="torch.profiler's pattern matcher, for-loop indexing: 10 selects with one parent",
)
def tensor_for_loop(trace: Trace, *, short_us: float = 200.0, share: float = 0.05) -> Iterator[Finding]:
    """A Python loop goes over a tensor.

    Sees: ten or more `aten::select`, `slice`, `index` or `unbind` calls of the program itself, of one shape, at most
    eight other calls apart, and the time from the first to the last: 5% of the window or more; on a GPU only the part
    during which the device waits. Rounds of more than 200 us are work that is worth its call.

    Costs: each round pays Python and dispatch for a slice of the data.

    Fix: compute on the whole tensor: a batched operator, broadcasting, `torch.vmap`, `unfold` for windows; a scan or
    `torch.compile` where a round needs the one before.
    """
    runs = trace.derived(slicing_loops)
    if not len(runs.rows):
        return
    inside = runs.spans.clip(trace.window.start, trace.window.end) - trace.derived(compiling)
    lost = (inside & trace.derived(idle_time)).total if trace.has_gpu else inside.total
    length = trace.window.end - trace.window.start
    if inside.total > len(runs.rows) * short_us * 1000 or not length or lost < share * length:
        return
    yield Finding(
        title=f"A Python loop over a tensor, up to {runs.longest:,} rounds, takes {percent(lost / length)} of the time",
        severity=severity_of(lost / length),
        confidence="medium",
        time_us=lost / 1000,
        window=trace.window,
        evidence=(*evidence(trace, runs.rows, limit=2), *evidence(trace, _called(trace, runs), limit=3)),
        cause="The loop takes one slice after another out of a tensor and calls operators on each.",
        fix="Compute on the whole tensor (broadcasting, batched operators, torch.vmap); torch.compile for recurrences.",
    )


def _called(trace: Trace, runs: SlicingLoops) -> Int32:
    """What the loops call besides taking slices."""
    rows = trace.derived(outer_operators)
    inside = runs.spans.overlap(trace.events.ts[rows], trace.events.end[rows]) > 0
    found: Int32 = rows[inside & ~np.isin(trace.events.name[rows], np.unique(trace.events.name[runs.rows]))]
    return found
