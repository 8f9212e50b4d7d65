"""Collectives: `trace.collectives()`."""

from __future__ import annotations

import math

import numpy as np

from torchwhy.trace.derived.collectives import collectives_of
from torchwhy.trace.model.trace import Trace
from torchwhy.trace.tables.grouping import us
from torchwhy.trace.tables.table import Table

__all__ = ["collectives"]


def collectives(trace: Trace) -> Table:
    """Return all collectives of this rank, sorted by time.

    Returns:
        `name`: "all_reduce", "all_gather", ...; `group`, `group_size`: the process group; `seq`: its number within the
        group, -1 if unknown; `start_us` from the beginning of the trace; `duration_us`, including the wait for other
        ranks; `bytes` as nccl-tests count them, None where unknown; `dtype`; `algorithm_gb_s`, `bus_gb_s`: bandwidths,
        10^9 bytes per second.
    """
    found = trace.derived(collectives_of)
    return Table(
        {
            "name": [c.name for c in found],
            "group": [c.group for c in found],
            "group_size": np.array([c.group_size for c in found], np.int64),
            "seq": np.array([c.seq for c in found], np.int64),
            "start_us": us([c.start - trace.beginning for c in found]),
            "duration_us": us([c.duration for c in found]),
            "bytes": [c.bytes if c.bytes >= 0 else None for c in found],
            "dtype": [c.dtype for c in found],
            "algorithm_gb_s": [_known(c.algorithm_bandwidth) for c in found],
            "bus_gb_s": [_known(c.bus_bandwidth) for c in found],
        }
    )


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
