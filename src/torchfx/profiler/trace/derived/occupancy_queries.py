"""Kernels whose launch the program adapted: right before it, it asked how many blocks fit on a multiprocessor."""

from __future__ import annotations

import numpy as np

from torchfx.profiler.trace.file.columns import Int32
from torchfx.profiler.trace.meaning.kinds import Kind
from torchfx.profiler.trace.meaning.runtime import OCCUPANCY_QUERY
from torchfx.profiler.trace.model.trace import Trace

__all__ = ["adapted_kernels"]


def adapted_kernels(trace: Trace) -> Int32:
    """Rows of kernels with an occupancy query between their launch and the launch before it on the same thread."""
    events, links = trace.events, trace.links
    asked = events.of(OCCUPANCY_QUERY)
    if not len(asked) or not len(links.launches):
        return np.zeros(0, np.int32)
    rows = np.concatenate((asked, links.launches))
    query = np.repeat([True, False], [len(asked), len(links.launches)])
    order = np.lexsort((events.ts[rows], events.lane[rows]))
    rows, query = rows[order], query[order]
    follows = query[:-1] & ~query[1:] & (events.lane[rows[:-1]] == events.lane[rows[1:]])
    work = links.put_by(np.sort(rows[1:][follows]))
    found: Int32 = work[events.kind[work] == Kind.KERNEL]
    return found
