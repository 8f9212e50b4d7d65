"""Counters of the devices: `trace.counters()`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from torchwhy.trace.derived.device_counters import CounterSeries, device_counters
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.tables.table import Table

if TYPE_CHECKING:
    from torchwhy.trace.model.trace import Trace

__all__ = ["counters"]

COLUMNS: Final = ("device", "counter", "unit", "samples", "mean", "busy_mean", "lowest", "highest")


def counters(trace: Trace) -> Table:
    """The counters of the devices within the window: hardware counters of Kineto's, clock, power and temperature.

    Returns:
        `device`; `counter`: its name in the file; `unit`: of the values, "" where the name does not show it; `samples`:
        values that hold within the window; `mean` over its time, `busy_mean` over the time in which the device worked:
        None where no value is known of it; `lowest`, `highest`. No rows where none were recorded.
    """
    found = [_row(trace, series) for series in trace.derived(device_counters)]
    return Table.of([row for row in found if row["samples"]], COLUMNS)


def _row(trace: Trace, series: CounterSeries) -> dict[str, Any]:
    window, values = trace.window, series.within(trace.window)
    whole = Intervals.union([window.start], [window.end])
    busy = next((gpu.busy & whole for gpu in trace.gpus if gpu.device == series.device), None)
    return {
        "device": series.device,
        "counter": series.name,
        "unit": series.meaning.unit,
        "samples": len(values),
        "mean": series.mean(whole),
        "busy_mean": series.mean(busy) if busy is not None else None,
        "lowest": float(np.min(values)) if len(values) else None,
        "highest": float(np.max(values)) if len(values) else None,
    }
