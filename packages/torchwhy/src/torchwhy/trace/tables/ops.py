"""Operators by name: `trace.ops()`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from torchwhy.errors import ArgumentError
from torchwhy.trace.derived.device_time import device_time
from torchwhy.trace.derived.memory import operator_bytes
from torchwhy.trace.file.columns import Flags, Int32, Int64
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.tables.grouping import Groups, us
from torchwhy.trace.tables.table import Table

if TYPE_CHECKING:
    from torchwhy.trace.model.trace import Trace

__all__ = ["ops"]


def ops(trace: Trace, *, by_shape: bool = False, by_stack: int = 0) -> Table:
    """Return operators by name, sorted by own host time, like `key_averages()`.

    Args:
        by_shape: one row per name and shapes of the inputs (`input_dims`; recorded with record_shapes=True).
        by_stack: one row per name and this number of innermost Python frames (`stack`; recorded with with_stack=True).

    Returns:
        `name`; `calls`, where an operator whose only call has the same name counts once with it; `host_total_us`, with
        the operators they called (nested calls of the same name count once); `host_self_us`, without; `device_total_us`
        and `device_self_us`: durations of the kernels, copies and fills launched in them at any depth, and by
        themselves; `mean_us` per call on the host; shares of all time in operators (`host_self_share`,
        `host_total_share`) and of all device work (`device_self_share`). Device work that no operator launched has the
        row "(no operator)". Where memory was recorded: bytes allocated less bytes released, in the calls (`host_bytes`,
        `device_bytes`) and in them but not in operators they called (`host_self_bytes`, `device_self_bytes`).

    Raises:
        ArgumentError: by_stack is negative.
    """
    if by_stack < 0:
        raise ArgumentError(f"by_stack must be a number of frames, 0 or more, got {by_stack}")
    events, tree = trace.events, trace.calls
    rows = np.concatenate((events.rows(Kind.OPERATOR), events.borrowed(Kind.OPERATOR)))
    time = trace.derived(device_time)
    outer = np.zeros(len(events), np.bool_)
    outer[tree.outermost_of_name(rows)] = True
    counted = outer[rows]
    keys, labels = [events.name[rows]], dict[str, list[str]]()
    if by_shape:
        keys.append(events.text_ids("Input Dims", rows))
    if by_stack:
        stack, texts = _stacks(trace, rows, by_stack)
        keys.append(stack)
    groups = Groups(*keys)
    first = rows[groups.first].tolist()
    labels["name"] = [trace.name(row) for row in first]
    if by_shape:
        labels["input_dims"] = [events.text("Input Dims", row) or "" for row in first]
    if by_stack:
        labels["stack"] = [texts[i] for i in stack[groups.first].tolist()]

    def within(amounts: Int64) -> Int64:
        """Sums over the calls that aren't inside another of their name."""
        return groups.sum(np.where(counted, amounts[rows], 0))

    again = _called_by_its_namesake_alone(trace, rows)
    calls = groups.sum(~again)
    total, own = within(events.dur), groups.sum(tree.self_time[rows])
    device = groups.sum(time.own[rows])
    around = np.append(tree.nearest(events.kind == Kind.OPERATOR), np.int32(-1))[tree.parent[rows]]
    whole = max(int(events.dur[rows[around < 0]].sum()), 1)  # in operators that no other is around
    columns: dict[str, Any] = {
        **labels,
        "calls": calls,
        "host_total_us": us(total),
        "host_self_us": us(own),
        "device_total_us": us(within(time.total)),
        "device_self_us": us(device),
        "mean_us": us(groups.sum(np.where(again, 0, events.dur[rows]))) / np.maximum(calls, 1),
        "host_self_share": own / whole,
        "host_total_share": total / whole,
        "device_self_share": device / max(int(events.dur[trace.links.work].sum()), 1),
    }
    if len(events.rows(Kind.MEMORY)):
        for name, amounts in zip(("host", "device"), trace.derived(operator_bytes), strict=True):
            columns[f"{name}_bytes"] = within(tree.sums(amounts))
            columns[f"{name}_self_bytes"] = groups.sum(amounts[rows])
    return _with_the_rest(trace, Table(columns).sorted("host_self_us"))


def _with_the_rest(trace: Trace, table: Table) -> Table:
    """The table with a row for the device work that no operator launched, where there is any."""
    work = trace.links.work[trace.derived(device_time).operator < 0]
    if not len(work):
        return table
    spent, whole = int(trace.events.dur[work].sum()), int(trace.events.dur[trace.links.work].sum())
    row: dict[str, Any] = dict.fromkeys(table.columns, 0) | dict.fromkeys(("input_dims", "stack"), "")
    row |= {"name": "(no operator)", "calls": len(work), "device_self_share": spent / max(whole, 1)}
    row |= {"device_total_us": spent / 1000, "device_self_us": spent / 1000}
    return Table({name: [*column, row[name]] for name, column in table.columns.items()})


def _called_by_its_namesake_alone(trace: Trace, rows: Int32) -> Flags:
    """For each operator whether it is the only call of an operator with the same name, as when a recipe runs its
    operator.

    `key_averages()` makes such pairs one.
    """
    above = trace.calls.parent[rows]
    called = np.bincount(trace.calls.parent[trace.calls.nested] + 1, minlength=len(trace.events) + 1)
    name = trace.events.name
    found: Flags = (above >= 0) & (name[rows] == name[above]) & (called[above + 1] == 1)
    return found


def _stacks(trace: Trace, rows: Int32, frames: int) -> tuple[Int32, list[str]]:
    """For each operator the number of its innermost frames, and the text of each number."""
    around = trace.frames.nearest(trace.events.kind == Kind.PYTHON)[rows]
    places, which = np.unique(around, return_inverse=True)
    numbers: dict[str, int] = {}
    found = []
    for place in places.tolist():
        stack = [trace.name(place), *trace.stack(place)] if place >= 0 else []
        found.append(numbers.setdefault(" < ".join(stack[:frames]), len(numbers)))
    number: Int32 = np.array(found, np.int32)[which.reshape(-1)]
    return number, list(numbers)
