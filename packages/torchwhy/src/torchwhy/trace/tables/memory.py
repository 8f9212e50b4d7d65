"""Allocations over time: `trace.memory()`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from torchwhy.trace.file.columns import ABSENT
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.tables.grouping import Groups, us
from torchwhy.trace.tables.table import Table

if TYPE_CHECKING:
    from torchwhy.trace.model.trace import Trace

__all__ = ["memory"]

SUMMARY: Final = (
    "device",
    "allocations",
    "releases",
    "allocated_bytes",
    "peak_bytes",
    "peak_at_us",
    "peak_reserved_bytes",
)
_TYPES: Final = {0: "cpu", 1: "cuda", 6: "hip", 12: "xpu", 18: "mtia", 20: "privateuse1"}


def memory(trace: Trace, *, summary: bool = False) -> Table:
    """Return allocations and releases, sorted by time; recorded with profile_memory=True.

    Args:
        summary: one row per device instead: `allocations`, `releases`, `allocated_bytes` (requested in all),
            `peak_bytes` and when it was reached (`peak_at_us`), `peak_reserved_bytes`.

    Returns:
        `start_us` from the beginning of the trace; `device` such as "cuda:0"; `bytes`: negative where released;
        `allocated_bytes` in all afterwards: as recorded, or where old traces don't, counted from the beginning of the
        trace (`counted`); `reserved_bytes` by the caching allocator, 0 where not recorded.
    """
    events = trace.events
    rows = events.rows(Kind.MEMORY)
    kind, number, size = (events.integers(key, rows) for key in ("Device Type", "Device Id", "Bytes"))
    kind, number = np.where(kind == ABSENT, 0, kind), np.where(number == ABSENT, -1, number)
    size = np.where(size == ABSENT, 0, size)
    total, reserved = (events.integers(key, rows) for key in ("Total Allocated", "Total Reserved"))
    counted = total == ABSENT
    groups = Groups(kind, number)
    device = [_device(int(kind[i]), int(number[i])) for i in groups.first.tolist()]
    for members in groups.members():
        running = np.cumsum(size[members])
        total[members] = np.where(counted[members], running, total[members])
    reserved = np.where(reserved == ABSENT, 0, reserved)
    if summary:
        return Table.of(
            [
                {
                    "device": name,
                    "allocations": int((size[members] > 0).sum()),
                    "releases": int((size[members] < 0).sum()),
                    "allocated_bytes": int(np.maximum(size[members], 0).sum()),
                    "peak_bytes": int(total[members].max()),
                    "peak_at_us": float(events.ts[rows[members[total[members].argmax()]]] - trace.beginning) / 1000,
                    "peak_reserved_bytes": int(reserved[members].max()),
                }
                for name, members in zip(device, groups.members(), strict=True)
            ],
            SUMMARY,
        )
    return Table(
        {
            "start_us": us(events.ts[rows] - trace.beginning),
            "device": [device[i] for i in groups.which.tolist()],
            "bytes": size,
            "allocated_bytes": total,
            "reserved_bytes": reserved,
            "counted": counted,
        }
    )


def _device(kind: int, number: int) -> str:
    name = _TYPES.get(kind, f"device type {kind}")
    return name if number < 0 else f"{name}:{number}"
