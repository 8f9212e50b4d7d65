"""Tables of vectors: gradients of whole tables for some rows, and many small tables."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import ForwardPass, backward_of, forward_pass, work_of
from torchwhy.trace.derived.idle import at_stake
from torchwhy.trace.derived.shapes import Shape, shapes, tensor_lists
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.annotations import OPTIMIZER
from torchwhy.trace.meaning.arithmetic import DENSE_TABLE_GRADIENT, TABLE_LOOKUP
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.tensors import CONCATENATE
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["dense_table_gradient", "tables_one_by_one"]

APART: Final = 4
"""At most this number of the program's operators is between the lookups of two columns."""


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


@rule(
    "D79",
    "tables-one-by-one",
    source="lookups in many tables whose results are joined",
    frees="host",
)
def tables_one_by_one(
    trace: Trace, *, tables: int = 8, short_us: float = 100.0, share: float = 0.05
) -> Iterator[Finding]:
    """Each column is looked up in a separate small table, one after the other.

    Sees: eight or more `aten::embedding` in a row, at most four other operators between two, with as many indices and
    vectors of one width, and `aten::cat` or `stack` after them, of tensors of that shape. They take less than 100 us
    each (median), and all together, with their backward pass and what the optimizer does on such tables, 5% of the
    window or more; on a GPU only the part during which the device waits. Needs recorded shapes.

    Costs: each lookup pays the overhead of its calls, in the forward pass, in the backward pass and in the optimizer.

    Fix: one `nn.Embedding` for all columns, with an offset added to the codes of each:
    `table(codes + offsets).flatten(1)`.

    Known problems: tables are known by their shapes. What an optimizer does on lists of weights isn't counted.
    """
    program, window, events = trace.derived(forward_pass), trace.derived(steady_window), trace.events
    joins = np.flatnonzero(events.are(CONCATENATE, program.rows)).tolist()
    found = [(mine, join) for join in joins if len(mine := _lookups_before(trace, program, join)) >= tables]
    if not found:
        return
    rows = program.rows[np.concatenate([mine for mine, _ in found])]
    if float(np.median(events.dur[rows])) > short_us * 1000:
        return
    spans = Intervals.union(
        [events.ts[program.rows[mine[0]]] for mine, _ in found], [events.end[program.rows[join]] for _, join in found]
    )
    updates = _in_optimizers(trace, {taken[0] for row in rows.tolist() if (taken := shapes(trace, row))})
    when = spans | events.times_of(np.concatenate((backward_of(trace, rows), updates)))
    part = window.share(at_stake(trace, when))
    if part < share:
        return
    most = max(len(mine) for mine, _ in found)
    yield Finding(
        title=f"Columns are looked up in {most} tables one by one: {percent(part)} of the time",
        confidence="medium",
        stretches=when,
        window=window,
        evidence=evidence(trace, rows),
        cause="A loop calls an embedding for each column, and joins the results.",
        fix="One nn.Embedding for all columns, with an offset added to the codes of each: "
        "table(codes + offsets).flatten(1).",
    )


def _lookups_before(trace: Trace, program: ForwardPass, join: int) -> list[int]:
    """The lookups right before an operator, of equal indices' shapes and widths, unless it joins something else."""
    found: list[int] = []
    width: Shape | None = None
    for i in range(join - 1, -1, -1):
        if (found or [join])[-1] - i > APART + 1 or program.step[i] != program.step[join]:
            break
        if not trace.events.are(TABLE_LOOKUP, program.rows[i : i + 1])[0]:
            continue
        taken = program.shapes[i]
        made = (*taken[1], taken[0][-1]) if len(taken) == 2 else None
        if made is None or (width is not None and made != width):
            break
        width = made
        found.append(i)
    joined = program.lists[join][0] if program.lists[join] else [width]  # long lists aren't recorded
    return found[::-1] if width in joined else []
