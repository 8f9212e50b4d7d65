"""Kernels by name: `trace.kernels()`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from torchwhy.trace.derived.kernels import kernel_names
from torchwhy.trace.derived.launches import adapted_kernels
from torchwhy.trace.file.columns import ABSENT, Int32
from torchwhy.trace.meaning.kernels import distinct
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.tables.grouping import Groups, us
from torchwhy.trace.tables.table import Table

if TYPE_CHECKING:
    from torchwhy.trace.model.trace import Trace

__all__ = ["kernels", "labels", "short_names"]


def short_names(trace: Trace) -> dict[str, str]:
    """A short name for every kernel name of the trace, different for different ones; see `trace.derived`."""
    events = trace.events
    names = np.unique(events.name[events.rows(Kind.KERNEL)]).tolist()
    return distinct(events.texts[i] if i >= 0 else "" for i in names)


def labels(trace: Trace, rows: Int32) -> list[str]:
    """The names of events, of kernels as in `trace.kernels()`; "" for -1."""
    if not len(trace.events):
        return [""] * len(rows)
    events, short = trace.events, trace.derived(short_names)
    name = events.name[rows].astype(np.int64)
    code = np.where((rows >= 0) & (name >= 0), 2 * name + (events.kind[rows] == Kind.KERNEL), -1)
    distinct_codes, which = np.unique(code, return_inverse=True)
    texts = []
    for one in distinct_codes.tolist():
        text = events.texts[one // 2] if one >= 0 else ""
        texts.append(short.get(text, text) if one % 2 and one >= 0 else text)
    return [texts[i] for i in which.reshape(-1).tolist()]


def kernels(trace: Trace) -> Table:
    """Return kernels by name, sorted by total time.

    Returns:
        `name`, shortened but unique; `description` in words; `calls`; `total_us`; `share` of the time in which the
        devices were busy (kernels that ran at the same time share it, so the shares may add up to more than 1);
        `median_us`, `min_us`, `max_us`; the most frequent `grid` and `block`; `registers` per thread and
        `shared_memory` per block in bytes of most calls, -1 where not recorded; `adapted`: calls whose launch the
        program adapted to an occupancy query right before it; `full_name` as in the file.
    """
    events = trace.events
    rows = events.rows(Kind.KERNEL)
    groups = Groups(events.name[rows])
    names = [trace.name(row) for row in rows[groups.first].tolist()]
    adapted = np.isin(rows, trace.derived(adapted_kernels))
    short = trace.derived(short_names)
    spent, busy = events.dur[rows], trace.gpu.busy.total
    members = [rows[group] for group in groups.members()]
    return Table(
        {
            "name": [short[name] for name in names],
            "description": [_described(trace, group) for group in members],
            "calls": groups.count,
            "total_us": us(groups.sum(spent)),
            "share": groups.sum(spent) / max(busy, 1),
            "median_us": groups.median(spent) / 1000,
            "min_us": us(groups.least(spent)),
            "max_us": us(groups.most(spent)),
            "grid": [_usual(trace, "grid", group) for group in members],
            "block": [_usual(trace, "block", group) for group in members],
            "registers": [_most(trace, "registers per thread", group) for group in members],
            "shared_memory": [_most(trace, "shared memory", group) for group in members],
            "adapted": groups.sum(adapted),
            "full_name": names,
        }
    ).sorted("total_us")


def _usual(trace: Trace, key: str, rows: Int32) -> str:
    """The most frequent value of a textual argument, without brackets: "64, 1, 1"."""
    found = trace.events.text_ids(key, rows)
    found = found[found >= 0]
    if not len(found):
        return ""
    value, _ = Counter(np.asarray(found).tolist()).most_common(1)[0]
    return trace.events.texts[value].strip("[] ").replace(",", ", ").replace("  ", " ")


def _most(trace: Trace, key: str, rows: Int32) -> int:
    """The most frequent value of a whole number, or -1."""
    found = trace.events.integers(key, rows)
    values, count = np.unique(found[found != ABSENT], return_counts=True)
    return int(values[count.argmax()]) if len(values) else -1


def _described(trace: Trace, rows: Int32) -> str:
    """What most of these kernels compute, by the operators that launched them."""
    return Counter(name.description for name in trace.derived(kernel_names).of(rows)).most_common(1)[0][0]
