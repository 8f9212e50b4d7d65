"""Steps: `trace.steps()`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.runtime import WAIT_FOR_DEVICE
from torchwhy.trace.tables.grouping import us
from torchwhy.trace.tables.table import Table

if TYPE_CHECKING:
    from torchwhy.trace.file.columns import Int64
    from torchwhy.trace.model.trace import Trace

__all__ = ["step_times"]


def step_times(trace: Trace) -> Table:
    """Return the steps, sorted by time; no rows if no steps were marked and no repetition is certain.

    Returns:
        `name`; `phase`: "prefill", "decode", ... of an inference server's step, "" of others; `inferred`: False where
        the program announced the step; `start_us` from the beginning of the trace;
        `host_us`: its duration on the host; `total_us`: the same until the device work launched in it has ended;
        `device_busy_us` and `device_idle_us`: how much of that any device had work, and had none; `launches` of
        kernels; `kernels`: how many those were; `syncs`: waits of the host for a device.
    """
    events, steps = trace.events, trace.steps_found
    starts = np.array([step.start for step in steps], np.int64)
    ends = np.array([step.end for step in steps], np.int64)
    until = np.array([step.device_end for step in steps], np.int64)
    busy = trace.gpu.busy.overlap(starts, until)
    launched = trace.links.launch[events.kind[trace.links.work] == Kind.KERNEL]
    syncs = events.of(WAIT_FOR_DEVICE)
    idle = until - starts - busy if trace.has_gpu else np.zeros_like(busy)
    return Table(
        {
            "name": [step.name for step in steps],
            "phase": [step.phase for step in steps],
            "inferred": np.array([step.inferred for step in steps], np.bool_),
            "start_us": us(starts - trace.beginning),
            "host_us": us(ends - starts),
            "total_us": us(until - starts),
            "device_busy_us": us(busy),
            "device_idle_us": us(idle),
            "launches": _count(events.ts[trace.links.launches], starts, ends),
            "kernels": _count(events.ts[launched[launched >= 0]], starts, ends),
            "syncs": _count(events.ts[syncs], starts, ends),
        }
    )


def _count(times: Int64, starts: Int64, ends: Int64) -> Int64:
    """How many moments lie in each stretch."""
    times = np.sort(times)
    found: Int64 = np.searchsorted(times, ends) - np.searchsorted(times, starts)
    return found
