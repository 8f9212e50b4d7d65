"""Gradients of whole tables of vectors, of which a batch reads some rows."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import forward_pass, work_of
from torchwhy.trace.derived.shapes import Shape, shapes, tensor_lists
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.annotations import OPTIMIZER
from torchwhy.trace.meaning.arithmetic import DENSE_TABLE_GRADIENT, TABLE_LOOKUP
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["dense_table_gradient"]


@rule("D35", "dense-table-gradient", source="rows of a table against the indices of a batch", frees="device")
def dense_table_gradient(trace: Trace, *, share: float = 0.05, rows_per_index: float = 10) -> Iterator[Finding]:
    """A large table is updated as a whole for a few of its rows.

    Sees: `aten::embedding` with a table that has ten times as many rows as are looked up, and its gradient from
    `aten::embedding_dense_backward`. That, and the operators of optimizers that read tensors of the table's shape, take
    5% of the window or more.

    Costs: the gradient is as large as the table, zero except for a few rows; it is filled, and the optimizer goes over
    weights, gradient and moments as a whole in each step.

    Fix: `nn.Embedding(..., sparse=True)` with `torch.optim.SparseAdam`, `SGD` or `Adagrad`; the other parameters keep
    their optimizer.

    Known problems: SparseAdam updates the moments of the rows used only, so training goes another way. A table that is
    also the last layer's weight has a dense gradient anyway; it is left out where a product reads its shape.
    """
    program, window, events = trace.derived(forward_pass), trace.derived(steady_window), trace.events
    lookups = program.rows[events.are(TABLE_LOOKUP, program.rows)]
    gradients = events.of(DENSE_TABLE_GRADIENT)
    if not len(lookups) or not len(gradients):
        return
    tables: dict[Shape, float] = {}
    for row in lookups.tolist():
        taken = shapes(trace, row)
        if len(taken) > 1:
            tables[taken[0]] = min(tables.get(taken[0], np.inf), taken[0][0] / max(prod(taken[1]), 1))
    is_lookup = events.are(TABLE_LOOKUP, program.rows)
    also_read = {shape for i, taken in enumerate(program.shapes) if not is_lookup[i] for shape in taken}
    also_read |= {shape[::-1] for shape in also_read}
    large = {shape for shape, ratio in tables.items() if ratio >= rows_per_index and shape not in also_read}
    updates = _in_optimizers(trace, large)
    if not large or not len(updates):
        return
    rows = np.concatenate((_outermost(trace, gradients), updates))
    rows = rows[trace.in_steps(rows) & events.begin_in(rows, window.start, window.end)]
    when = work_of(trace, rows)
    part = window.share(when)
    if part < share:
        return
    biggest = max(large, key=prod)
    fewest = tables[biggest]
    yield Finding(
        title=f"All {biggest[0]:,} rows of a table are updated for a batch that reads at most 1 of {fewest:,.0f}: "
        f"{percent(part)} of the time",
        confidence="medium",
        time_us=when.total / 1000 * (1 - 1 / fewest),
        stretches=when,
        window=window,
        evidence=(
            *evidence(trace, [row for row in lookups.tolist() if shapes(trace, row)[0] in large], limit=1),
            *evidence(trace, rows, limit=4),
        ),
        cause="The gradient of nn.Embedding is dense: as large as the table, zero except for the rows that were "
        "read. The optimizer updates all of it.",
        fix="nn.Embedding(..., sparse=True) with torch.optim.SparseAdam for the table, and the present optimizer for "
        "the other parameters.",
    )


def _in_optimizers(trace: Trace, tables: set[Shape]) -> Int32:
    """Operators within optimizers' steps that read tensors of these shapes alone."""
    events = trace.events
    rows = events.rows(Kind.OPERATOR)
    rows = rows[trace.calls.within(rows, events.of(OPTIMIZER))]
    texts = events.text_ids("Input Dims", rows)
    found = []
    for text in np.unique(texts[texts >= 0]).tolist():
        same = rows[texts == text]
        taken = {*shapes(trace, int(same[0])), *(one for each in tensor_lists(trace, int(same[0])) for one in each)}
        if taken and taken <= tables:
            found.append(same)
    return np.concatenate([np.empty(0, np.int32), *found]).astype(np.int32)


def _outermost(trace: Trace, rows: Int32) -> Int32:
    """The nodes of the backward pass around some operators, or these themselves."""
    parent = trace.calls.parent[rows]
    found: Int32 = np.unique(np.where(parent >= 0, parent, rows)).astype(np.int32)
    return found
