"""Copies and fills that the host waits for although it needn't."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.copies.pinned import rate_text
from torchwhy.rules.copies.transfers import PAGEABLE, PINNED, SMALL, step_count, transfers
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.idle import profiler_overhead
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.runtime import BLOCKING_COPY, BLOCKING_FILL, STREAM_SYNCHRONIZE
from torchwhy.trace.meaning.tensors import COPY_TENSOR
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import counted, percent

__all__ = ["sync_copy", "sync_memset"]


@rule(
    "C3",
    "sync-copy",
    source="calls without `Async`, as in Nsight Systems' rule on synchronous copies; 1% of the window",
    needs={"gpu", "idle"},
    frees="exposed",
)
def sync_copy(trace: Trace, *, share: float = 0.01) -> Iterator[Finding]:
    """The host waits for copies that could run while it continues.

    Sees: copy calls that return when the data has arrived (`cudaMemcpy`, `hipMemcpyWithStream`), and copies of pinned
    memory with a wait for the stream in the same operator. Copies from pageable memory by an asynchronous call belong
    to pageable-copy, reading a scalar to item-per-step.

    Costs: while the host waits it launches nothing; counted is the part of the wait during which the device computes
    nothing.

    Fix: `non_blocking=True` from pinned memory; towards the host, synchronise once before the data is read.

    Known problems: a wait that a library makes on purpose, such as to free its buffer, looks the same. Copies of a few
    bytes with a wait belong to item-per-step and are left out.
    """
    copies = trace.derived(transfers)
    events = trace.events
    linked = copies.launch >= 0
    by_name = np.zeros(len(linked), np.bool_)
    by_name[linked] = events.are(BLOCKING_COPY, copies.launch[linked])
    large = (copies.bytes >= SMALL) | ((copies.bytes == 0) & copies.way("HtoD"))
    chosen = by_name & large & copies.way("HtoD", "DtoH")
    calls = copies.launch[chosen]
    waits = _waits_beside(trace, copies.launch[linked & large & (copies.host == PINNED) & ~by_name])
    rows = np.concatenate((calls, waits)).astype(np.int32)
    rows = np.unique(rows[trace.in_steps(rows)])
    union = trace.when(rows)
    waited = union - (trace.gpu.compute | trace.gpu.communication) - trace.derived(profiler_overhead)
    part = trace.window.share(waited)
    if not len(rows) or part < share:
        return
    pinned = not (copies.host[chosen] == PAGEABLE).any() and bool((copies.host[chosen] == PINNED).all())
    yield Finding(
        title=f"The host waits for {counted(len(rows), 'copy', 'copies')} while the device computes nothing: "
        f"{percent(part)} of the time",
        confidence="medium",
        stretches=union,
        window=trace.window,
        evidence=evidence(trace, rows, note=rate_text(copies, chosen)),
        cause="The copy was requested without non_blocking=True, so the call returns when the data has arrived.",
        fix="Copy with non_blocking=True; where the host reads the data afterwards, synchronise once before that."
        if pinned
        else "Copy with non_blocking=True, which takes effect from and to pinned memory only; where the host reads the "
        "data afterwards, synchronise once before that.",
        linked=True,
    )


@rule(
    "C4",
    "sync-memset",
    source="`cudaMemset` instead of `cudaMemsetAsync`, as in Nsight Systems' rule on synchronous memsets",
    needs={"gpu"},
    frees="host",
)
def sync_memset(trace: Trace, *, per_step: float = 1, share: float = 0.001) -> Iterator[Finding]:
    """Device memory is filled by calls that may wait.

    Sees: `cudaMemset` and its relatives without `Async`, in every step, for at least 0.1% of the window.

    Costs: these calls go to the default stream, so they wait for the other streams and the other streams for them.

    Fix: PyTorch itself fills asynchronously; in an extension use `cudaMemsetAsync` on PyTorch's current stream, or let
    the kernel write the zeros.

    Known problems: per-thread default streams make such a fill harmless; the trace doesn't say which mode the program
    was built with.
    """
    events = trace.events
    rows = events.of(BLOCKING_FILL)
    rows = rows[trace.in_steps(rows)]
    spent = trace.when(rows)
    part = trace.window.share(spent)
    if len(rows) < max(per_step * step_count(trace), 1) or part < share:
        return
    yield Finding(
        title=f"{len(rows)} synchronous fills of device memory take {percent(part)} of the window",
        confidence="medium",
        stretches=spent,
        window=trace.window,
        evidence=evidence(trace, rows),
        cause="A library or extension fills memory with a call that isn't asynchronous.",
        fix="In that extension call cudaMemsetAsync (hipMemsetAsync) on the current stream, or zero in the kernel.",
        linked=True,
    )


def _waits_beside(trace: Trace, launches: Int32) -> Int32:
    """Waits for the stream in the same aten::copy_ as the call of a copy, after it."""
    events, parent = trace.events, trace.calls.parent
    waits = events.of(STREAM_SYNCHRONIZE)
    if not len(waits) or not len(launches):
        return waits[:0]
    above = parent[waits]
    inside = (above >= 0) & events.are(COPY_TENSOR, np.maximum(above, 0))
    found: Int32 = waits[inside & np.isin(above, parent[launches])]
    return found
