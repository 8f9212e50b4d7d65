"""Copies by kind: `trace.copies()`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from torchwhy.trace.file.columns import ABSENT
from torchwhy.trace.meaning.copies import copy_direction
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.tables.grouping import Groups, us
from torchwhy.trace.tables.table import Table

if TYPE_CHECKING:
    from torchwhy.trace.model.trace import Trace

__all__ = ["copies"]


def copies(trace: Trace) -> Table:
    """Return copies to, from and on devices by kind, sorted by time.

    Returns:
        `name` as in the file; `direction` such as "host to device"; `host_memory`: "pageable", "pinned" or "" if
        unknown; `calls`; `bytes`; `total_us`; `gb_per_s`: bytes over time (10^9 bytes per second, 0 if the sizes are
        unknown); `exposed_us`: the part of the time in which no kernel or fill ran on any device.
    """
    events = trace.events
    rows = events.rows(Kind.MEMCPY)
    kind, source, target = (events.text_ids(key, rows) for key in ("copy kind", "src kind", "dst kind"))
    groups = Groups(events.name[rows], kind, source, target)
    first = rows[groups.first].tolist()
    kinds = [_kind(trace, row) for row in first]
    size = events.integers("bytes", rows)
    size = groups.sum(np.where((size == ABSENT) | (size < 0), 0, size))
    spent = groups.sum(events.dur[rows])
    busy = trace.gpu.compute | trace.gpu.communication
    exposed = []
    for group in groups.members():
        mine = events.times_of(rows[group])
        exposed.append((mine - busy).total)
    return Table(
        {
            "name": [trace.name(row) for row in first],
            "direction": [direction for direction, _ in kinds],
            "host_memory": [memory for _, memory in kinds],
            "calls": groups.count,
            "bytes": size,
            "total_us": us(spent),
            "gb_per_s": size / np.maximum(spent, 1),
            "exposed_us": us(exposed),
        }
    ).sorted("total_us")


def _kind(trace: Trace, row: int) -> tuple[str, str]:
    """Direction and kind of host memory, from "Memcpy HtoD (Pageable -> Device)" or from the arguments."""
    text = trace.name(row)
    kinds = [trace.events.text(key, row) or "" for key in ("copy kind", "src kind", "dst kind")]
    direction = copy_direction(text) or copy_direction(kinds[0])
    places = " ".join((text, *kinds)).lower()
    memory = "pageable" if "pageable" in places else "pinned" if "pinned" in places else ""
    return direction, memory
