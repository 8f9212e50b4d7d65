"""Chains of small operations, each a round trip to memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.compute.kernels import about_kernels
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.kernels import Kernels, kernels_of
from torchwhy.trace.derived.shapes import elements, shapes
from torchwhy.trace.file.columns import Flags, Int32, Int64, numbered_together
from torchwhy.trace.meaning.annotations import OPTIMIZER_STEP
from torchwhy.trace.meaning.arithmetic import ELEMENTWISE, FOREACH
from torchwhy.trace.meaning.kernels import MEMORY_BOUND, KernelName
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.operators import ACCUMULATE_GRADIENT
from torchwhy.trace.model.device import devices_of, streams_of
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import counted, percent

__all__ = ["elementwise_chain"]

UPDATING: Final = OPTIMIZER_STEP | FOREACH | ACCUMULATE_GRADIENT
"""Work on parameters and gradients one by one: no compiler of a model fuses it."""


@rule(
    "D10",
    "elementwise-chain",
    source="adjacent elementwise kernels, as fusion opportunities in TraceLens; 3 in a row, 10% of the window",
    frees="all",
)
def elementwise_chain(
    trace: Trace, *, length: float = 3, share: float = 0.1, shortest_us: float = 2, elements_at_least: float = 16384
) -> Iterator[Finding]:
    """Elementwise operations follow each other, each reading and writing its tensors.

    Sees: on the device, three or more of PyTorch's elementwise, reduction, softmax or normalization kernels in a row on
    a stream; on a machine without GPU, three or more elementwise operators in a row on tensors of 16384 elements or
    more (needs `record_shapes=True`). Each must take tensors of as many elements as the one before, where shapes are
    recorded. If calls repeat in the same order, the rounds may be independent, so each counts as a separate run. The
    rule counts all but the longest kernel of each run, and reports if they take at least 10% of the kernels' time (on
    the CPU, of the window). Optimizers and the accumulation of gradients are left out.

    Costs: such a kernel takes as long as its tensors take to be read and written; fused, intermediate tensors never
    leave the registers.

    Fix: `torch.compile` around them, or one operator that does the same (`F.layer_norm`, `F.gelu`, `torch.addcmul`).

    Known problems: that each kernel reads the previous one's result is inferred from their sizes. Kernels also
    count if another operator reads a result between them; a compiler then saves less.
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
    if not fusable.any():
        return
    step = np.where(launch >= 0, trace.step_of(np.maximum(launch, 0)), -1)
    _, place = numbered_together(devices_of(events, kernels.rows), streams_of(events, kernels.rows), step)
    order = np.argsort(place, kind="stable")
    call, size = _calls(trace, kernels, order)
    inside, run = _runs(fusable[order], place[order], call, size, length)
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
        title=f"Fusing {counted(len(at), f'{_sort(kernels, at)} kernel')} in {counted(count, 'chain')} would save "
        f"{percent(part)} of the compute kernels' time",
        confidence="medium",
        cause="Each kernel reads its inputs from memory and writes its result back, for a few operations per element.",
        fix="These run outside the compiled regions: extend torch.compile to them."
        if compiled
        else "torch.compile around them fuses each chain into one kernel; for single places one operator that does all "
        "of it (F.layer_norm, F.gelu, torch.addcmul).",
        linked=False,
        part=saved / int(spent.sum()),
        calls=1 - count / len(at),
    )


def _sort(kernels: Kernels, at: Int64) -> str:
    """The words for kernels that read and write more than they compute."""
    alike = bool(kernels.that(lambda name: name.operation == "elementwise")[at].all())
    return "elementwise" if alike else "memory-bound"


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
    chosen = events.are(ELEMENTWISE, rows) & (_sizes(trace, rows) >= elements_at_least)
    if not chosen.any():
        return
    beside = events.lane[rows].astype(np.int64) * 2**32 + trace.calls.parent[rows]
    _, which = numbered_together(events.name[rows], events.text_ids("Input Dims", rows))
    inside, run = _runs(chosen, beside, which, _sizes(trace, rows), length)
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
        title=f"Fusing {counted(int(inside.sum()), 'elementwise operator')} in "
        f"{counted(len(np.unique(run[inside])), 'chain')} would save {percent(part)} of the time",
        confidence="medium",
        time_us=saved / 1000,
        stretches=covered,
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


def _sizes(trace: Trace, rows: Int32) -> Int64:
    """The elements of each operator's largest input, -1 where shapes aren't recorded; read once per distinct list."""
    ids = trace.events.text_ids("Input Dims", rows)
    distinct, first, which = np.unique(ids, return_index=True, return_inverse=True)
    sizes = [
        max(map(elements, shapes(trace, int(rows[at]))), default=-1) if i >= 0 else -1
        for i, at in zip(distinct.tolist(), first.tolist(), strict=True)
    ]
    return np.array(sizes, np.int64)[which.reshape(-1)] if sizes else np.zeros(0, np.int64)


def _calls(trace: Trace, kernels: Kernels, order: Int64) -> tuple[Int64, Int64]:
    """A number for each kernel, equal for the same kernel of the same operator on the same shapes; and `_sizes`."""
    events, rows, operator = trace.events, kernels.rows[order], kernels.operator[order]
    known = operator >= 0
    dims, size = np.full(len(rows), -1, np.int64), np.full(len(rows), -1, np.int64)
    dims[known], size[known] = events.text_ids("Input Dims", operator[known]), _sizes(trace, operator[known])
    caller = np.where(known, events.name[np.maximum(operator, 0)], -1)
    return numbered_together(events.name[rows], caller, dims)[1], size


def _runs(chosen: Flags, group: Int64, call: Int64, size: Int64, length: float) -> tuple[Flags, Int64]:
    """Whether each entry is in a long enough run of chosen entries of one group, and the number of its run.

    A run ends before calls that repeat the last ones of it, and before one on tensors of another size.
    """
    run = np.zeros(len(chosen), np.int64)
    number, last = 0, dict[int, int]()
    calls = call.tolist()
    entries = zip(chosen.tolist(), group.tolist(), calls, size.tolist(), strict=True)
    before = (False, -1, -1)
    for i, (own, where, what, many) in enumerate(entries):
        same_size = many == before[2] or many < 0 or before[2] < 0
        if (own, where) != before[:2] or not same_size or _repeats(calls, last.get(what, i), i):
            number, last = number + 1, {}
        last[what] = i
        run[i], before = number, (own, where, many)
    inside: Flags = chosen & (np.bincount(run)[run] >= length) if len(chosen) else chosen
    return inside, run


def _repeats(calls: list[int], before: int, at: int) -> bool:
    """Whether calls from `at` on are those since `before` again: two rounds of a loop. Two equal ones may be a chain's.

    A formula calls an operator at several places; a loop over tensors repeats all its calls in the same order.
    """
    count = at - before
    if count == 1:
        return at >= 2 and calls[at - 2] == calls[at]
    return count > 0 and calls[before:at] == calls[at : at + count]


def _longest(run: Int64, spent: Int64) -> int:
    """The longest entry of each run, added up."""
    _, which = np.unique(run, return_inverse=True)
    longest = np.zeros(int(which.max()) + 1, np.int64)
    np.maximum.at(longest, which, spent)
    return int(longest.sum())
