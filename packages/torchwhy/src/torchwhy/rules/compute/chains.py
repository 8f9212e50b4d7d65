"""Chains of small operations, each a round trip to memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.compute.kernels import Flags, about_kernels, kernels_of
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.shapes import elements, shapes
from torchwhy.trace.file.columns import Int32, Int64
from torchwhy.trace.meaning.annotations import OPTIMIZER_STEP
from torchwhy.trace.meaning.arithmetic import ELEMENTWISE, FOREACH
from torchwhy.trace.meaning.kernels import MEMORY_BOUND, KernelName
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.operators import ACCUMULATE_GRADIENT
from torchwhy.trace.model.device import devices_of, streams_of
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["elementwise_chain"]

UPDATING: Final = OPTIMIZER_STEP | FOREACH | ACCUMULATE_GRADIENT
"""Work on parameters and gradients one by one: no compiler of a model fuses it."""


@rule(
    "D10",
    "elementwise-chain",
    source="adjacent elementwise kernels, as fusion opportunities in TraceLens; 3 in a row, 10% of the window",
    frees="device",
)
def elementwise_chain(
    trace: Trace, *, length: float = 3, share: float = 0.1, shortest_us: float = 2, elements_at_least: float = 16384
) -> Iterator[Finding]:
    """Elementwise operations follow each other, each reading and writing its tensors.

    Sees: on the device, three or more of PyTorch's elementwise, reduction, softmax or normalization kernels in a row on
    a stream; on a machine without GPU, three or more elementwise operators in a row on tensors of 16384 elements or
    more (needs `record_shapes=True`). Counted is what remains when the longest of each run is kept, from 10% of the
    kernels' time (on the CPU, of the window) on. Optimizers and the accumulation of gradients are left out.

    Costs: such a kernel takes as long as its tensors take to be read and written; fused, intermediate tensors never
    leave the registers.

    Fix: `torch.compile` around them, or one operator that does the same (`F.layer_norm`, `F.gelu`, `torch.addcmul`).

    Known problems: kernels that must stay apart, because something else reads what lies between, count too; a compiler
    saves less then.
    """
    if trace.has_gpu:
        yield from _on_device(trace, length, share, shortest_us * 1000)
    else:
        yield from _on_cpu(trace, length, share, elements_at_least)


def _on_device(trace: Trace, length: float, share: float, shortest: float) -> Iterator[Finding]:
    events, kernels = trace.events, trace.derived(kernels_of)
    if not len(kernels.rows):
        return
    launch = trace.links.maker_of(kernels.rows)
    fusable = kernels.that(_fusable) & ~_updates(trace, launch) & (kernels.spent >= shortest)
    step = np.where(launch >= 0, trace.step_of(np.maximum(launch, 0)), -1)
    places = np.stack((devices_of(events, kernels.rows), streams_of(events, kernels.rows), step))
    place = np.unique(places, axis=1, return_inverse=True)[1].reshape(-1)
    order = np.argsort(place, kind="stable")
    inside, run = _runs(fusable[order], place[order], length)
    if not inside.any():
        return
    at, spent = order[inside], kernels.spent[order][inside]
    saved = int(spent.sum()) - _longest(run[inside], spent)
    part = saved / kernels.total if kernels.total else 0.0
    if part < share:
        return
    count = len(np.unique(run[inside]))
    compiled = bool(kernels.that(lambda name: name.library == "Triton").any())
    yield from about_kernels(
        trace,
        kernels.rows[at],
        title=f"{len(at)} elementwise kernels run in {count} chains; fusing them could save {percent(part)} of "
        "kernel time",
        confidence="medium",
        cause="Each kernel reads its inputs from memory and writes its result back, for a few operations per element.",
        fix="These run outside the compiled regions: extend torch.compile to them."
        if compiled
        else "torch.compile around them fuses each chain into one kernel; for single places one operator that does all "
        "of it (F.layer_norm, F.gelu, torch.addcmul).",
        linked=False,
        at_most_us=saved / 1000,  # chains of several streams may run at once
    )


def _on_cpu(trace: Trace, length: float, share: float, elements_at_least: float) -> Iterator[Finding]:
    events = trace.events
    rows = events.rows(Kind.OPERATOR)
    rows = rows[trace.in_steps(rows)]
    # Operators beside each other: those whose parent is no elementwise operator itself.
    parent = trace.calls.parent[rows]
    outer = (parent < 0) | ~events.are(ELEMENTWISE, np.maximum(parent, 0))
    rows = rows[outer & (trace.calls.sizes[rows] <= 3)]
    order = np.lexsort((events.ts[rows], trace.calls.parent[rows], events.lane[rows]))
    rows = rows[order]
    chosen = events.are(ELEMENTWISE, rows) & _large(trace, rows, elements_at_least)
    beside = events.lane[rows].astype(np.int64) * 2**32 + trace.calls.parent[rows]
    inside, run = _runs(chosen, beside, length)
    if not inside.any():
        return
    spent = events.dur[rows][inside]
    covered = events.times_of(rows[inside])
    covered = covered.clip(trace.window.start, trace.window.end)
    saved = min(int(spent.sum()) - _longest(run[inside], spent), covered.total)
    part = trace.window.share(covered) * saved / max(covered.total, 1)
    if part < share:
        return
    yield Finding(
        title=f"{int(inside.sum())} elementwise operators run in chains; fusing them could save {percent(part)} of "
        "time",
        confidence="medium",
        time_us=saved / 1000,
        window=trace.window,
        evidence=evidence(trace, rows[inside]),
        cause="Each operator reads its inputs from memory and writes its result back, for few operations per element.",
        fix="torch.compile fuses each chain into one loop; in-place variants (add_, mul_) spare the allocation where "
        "autograd allows them.",
    )


def _fusable(name: KernelName) -> bool:
    return name.operation in MEMORY_BOUND and name.library == "PyTorch" and name.operation not in ("random", "fill")


def _updates(trace: Trace, launch: Int32) -> Flags:
    """Whether launches lie within an optimizer's step or the accumulation of a gradient."""
    events = trace.events
    rows = events.of(UPDATING)
    steps = events.times_of(rows)
    if not len(steps):
        return np.zeros(len(launch), np.bool_)
    time = events.ts[np.maximum(launch, 0)]
    i = np.searchsorted(steps.starts, time, "right") - 1
    found: Flags = (launch >= 0) & (i >= 0) & (time < steps.ends[np.maximum(i, 0)])
    return found


def _large(trace: Trace, rows: Int32, at_least: float) -> Flags:
    """Whether an input of each operator has so many elements; read once per distinct list of shapes."""
    ids = trace.events.text_ids("Input Dims", rows)
    distinct, first, which = np.unique(ids, return_index=True, return_inverse=True)
    large = [
        i >= 0 and max(map(elements, shapes(trace, int(rows[at]))), default=0) >= at_least
        for i, at in zip(distinct.tolist(), first.tolist(), strict=True)
    ]
    found: Flags = np.array(large, np.bool_)[which.reshape(-1)] if len(large) else np.zeros(0, np.bool_)
    return found


def _runs(chosen: Flags, group: Int64, length: float) -> tuple[Flags, Int64]:
    """Of a sequence, which entries stand in runs of chosen ones of one group, long enough; and the run of each."""
    if not len(chosen):
        return chosen, np.zeros(0, np.int64)
    fresh = np.concatenate(([True], (chosen[1:] != chosen[:-1]) | (group[1:] != group[:-1])))
    run = np.cumsum(fresh) - 1
    inside: Flags = chosen & (np.bincount(run)[run] >= length)
    return inside, run.astype(np.int64)


def _longest(run: Int64, spent: Int64) -> int:
    """The longest entry of each run, added up."""
    _, which = np.unique(run, return_inverse=True)
    longest = np.zeros(int(which.max()) + 1, np.int64)
    np.maximum.at(longest, which, spent)
    return int(longest.sum())
