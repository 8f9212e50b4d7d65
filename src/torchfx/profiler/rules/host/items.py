"""Python reads numbers out of tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from torchfx.profiler.rules.evidence import evidence
from torchfx.profiler.rules.finding import Finding
from torchfx.profiler.rules.rule import rule
from torchfx.profiler.trace.derived.idle import idle_time
from torchfx.profiler.trace.derived.waits import host_waits
from torchfx.profiler.trace.file.columns import Int32
from torchfx.profiler.trace.meaning.kinds import Kind
from torchfx.profiler.trace.model.intervals import Intervals
from torchfx.profiler.trace.model.trace import Trace

__all__ = ["item_per_step"]

ITEM: Final = r"aten::(item|is_nonzero|equal)$"

BARE_ITEM: Final = r"aten::_local_scalar_dense$"


@rule(
    "B8",
    "item-per-step",
    source="aten::item as a habit of training loops; more than one per step",
)
def item_per_step(trace: Trace, *, per_step: float = 1.0, on_cpu: float = 100.0) -> Iterator[Finding]:
    """Python reads numbers out of tensors in every step.

    Sees: more than one `aten::item` (or `is_nonzero`, `_local_scalar_dense`) per step within which the host waits for
    the device. Reading a tensor that lies on the CPU is cheap; it is mentioned from 100 per step on.

    Costs: each makes the host wait until the device has finished everything before it. How much of that leaves the
    device idle is what explicit-sync reports.

    Fix: add up on the device (`total += loss.detach()`) and read every N steps; several numbers in one
    `torch.stack(...).tolist()`.
    """
    # Where nothing is known of rounds, the whole trace stands for 20 of them.
    steps, per = (len(trace.steps_found), " per step") if trace.steps_found else (20, "")
    shown = steps if per else 1
    rows = trace.events.find(ITEM, Kind.OPERATOR)
    if not len(rows):  # each item() has one inside; both would count twice where times are whole microseconds
        rows = trace.events.find(BARE_ITEM, Kind.OPERATOR)
    rows = rows[trace.in_steps(rows)]
    waiting, waits = _waiting(trace, rows)
    free = np.setdiff1d(_outermost(trace, rows), waiting)
    if len(waiting) > per_step * steps:
        found = trace.derived(host_waits)
        chosen = np.isin(found.rows, waits)
        stall = (Intervals.union(found.starts[chosen], found.ends[chosen]) & trace.derived(idle_time)).total
        yield Finding(
            title=f"{len(waiting) / shown:,.0f} numbers{per} are read out of tensors; each waits for the device",
            severity="low",
            confidence="high",
            time_us=stall / 1000,
            window=trace.window,
            evidence=evidence(trace, waiting),
            cause=(
                ".item(), float(), bool() or `if tensor:` needs the value, so the host waits until the device has "
                "computed it."
            ),
            fix="Add up on the device and read every N steps, several numbers with one .tolist().",
            linked=True,
        )
    if len(free) > on_cpu * steps:
        spent = int(trace.events.dur[free].sum())
        yield Finding(
            title=f"{len(free) / shown:,.0f} numbers{per} are read out of tensors on the CPU, without waiting",
            severity="info",
            confidence="high",
            time_us=min(spent / 1000, trace.window.us),
            window=trace.window,
            evidence=evidence(trace, free),
            cause="Python goes over values one by one; each costs about as much as a small operator.",
            fix="Read many values at once with .tolist(), or compute on whole tensors.",
            linked=True,
        )


def _outermost(trace: Trace, rows: Int32) -> Int32:
    """Those of the operators that aren't inside another of them."""
    inner = np.isin(trace.calls.parent[rows], rows)
    return rows[~inner]


def _waiting(trace: Trace, rows: Int32) -> tuple[Int32, Int32]:
    """Of these operators those in which a call waits for the device, and these calls."""
    waits = trace.derived(host_waits).rows
    wanted = np.zeros(len(trace.events), np.bool_)
    wanted[_outermost(trace, rows)] = True
    owners, calls = [], []
    for row in waits.tolist():
        owner = next((above for above in trace.ancestors(row) if wanted[above]), -1)
        if owner >= 0:
            owners.append(owner)
            calls.append(row)
    return np.unique(np.array(owners, np.int32)), np.array(calls, np.int32)
