"""Calls that query the driver and change nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence, most_first
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.launches import adapted_kernels, kernel_launches
from torchwhy.trace.meaning.kernels import decode
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.runtime import COPY_CALL, MEMORY_CALL, QUERY, SYNCHRONIZE
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import enumeration, percent

__all__ = ["runtime_query_noise"]


@rule("B20", "runtime-query-noise", source="calls seen between operators and launches in real traces", frees="nothing")
def runtime_query_noise(
    trace: Trace, *, share: float = 0.2, per_launch: float = 3.0, once_us: float = 1000.0
) -> Iterator[Finding]:
    """Calls that only query the driver take much of the time in it.

    Sees: calls that query and change nothing (cudaFuncGetAttributes, cudaOccupancyMaxActiveBlocksPerMultiprocessor,
    cudaEventQuery, hipGetDeviceProperties, ...): more than 20% of the time in runtime calls without waits, or more
    than three per launch. Calls of a millisecond or more are left out: they set up the driver, once.

    Costs: usually microseconds. Occupancy queries belong to heavy kernels that adapt their launch (matrix products,
    convolutions); event queries come from the thread that watches collectives, hipGetDeviceProperties from old
    versions of Triton.

    Fix: mostly none. On AMD use a newer Triton; many event queries on the main thread mean a loop that polls.

    Known problems: CUPTI costs more per call than such a query itself, so their share is smaller without a profiler.
    """
    events = trace.events
    calls = events.rows(Kind.RUNTIME)
    calls = calls[events.dur[calls] < once_us * 1000]
    launches = len(trace.derived(kernel_launches))
    asks = events.are(QUERY, calls)
    waits = events.are(SYNCHRONIZE | COPY_CALL | MEMORY_CALL, calls)
    rows = calls[asks]
    asked, work = int(events.dur[rows].sum()), int(events.dur[calls[~waits]].sum())
    enough = asked >= 0.005 * (trace.window.end - trace.window.start)
    if launches < 10 or not enough or not (asked > share * work or len(rows) > per_launch * launches):
        return
    threads = events.lane[rows]
    elsewhere = float(np.mean(threads != trace.main_lane))
    place = f", {percent(elsewhere)} of them on other threads" if elsewhere > 0.1 else ""
    part = asked / max(work, 1)
    each = len(rows) / launches
    yield Finding(
        title=f"Queries of the driver take {percent(part)} of the time in runtime calls: {each:.1f} per launch{place}",
        severity="info",
        confidence="high",
        stretches=trace.when(rows),
        window=trace.window,
        evidence=evidence(trace, rows),
        cause="Libraries query the driver before they launch; the thread that watches collectives polls events."
        + _adapted(trace),
        fix="Nothing, unless the main thread polls in a loop of the program.",
        linked=True,
    )


def _adapted(trace: Trace) -> str:
    """The kernels that occupancy queries precede, by their short names, the most time first."""
    rows = trace.derived(adapted_kernels)
    if not len(rows):
        return ""
    ids, which = np.unique(trace.events.name[rows], return_inverse=True)
    spent = np.bincount(which.reshape(-1), weights=trace.events.dur[rows])
    texts = [trace.events.texts[int(name)] for name in ids]
    short = [decode(texts[i]).short for i in most_first(spent, texts)[:3]]
    more = f" and {len(ids) - 3} more" if len(ids) > 3 else ""
    return f" Occupancy is queried before {enumeration(short)}{more}: kernels that adapt their launch."
