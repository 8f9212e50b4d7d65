"""Copies within the device's memory that operators make on the way."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.compute.kernels import caveat
from torchwhy.rules.copies.transfers import transfers
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.device_time import device_time
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.arithmetic import BIASED_PRODUCT
from torchwhy.trace.meaning.kernels import decode
from torchwhy.trace.meaning.operators import short_operator
from torchwhy.trace.meaning.tensors import CLONE, COPY_TENSOR, OUT_OF_PLACE
from torchwhy.trace.model.device import streams_of
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import duration, percent, size_text

__all__ = ["hidden_dtod_before_gemm", "out_of_place_clone"]


@rule(
    "C7",
    "hidden-dtod-before-gemm",
    source="a bias seeded by a copy, as compiled matmul-add does it: 32 MB, 33 us on an A100; on CPUs 1% of the window",
    frees="nothing",
)
def hidden_dtod_before_gemm(trace: Trace, *, share: float = 0.005, cpu_share: float = 0.01) -> Iterator[Finding]:
    """A copy of the bias hides in front of a matrix multiplication.

    Sees: a copy within the device's memory launched by `aten::addmm` (or its batched relatives), followed on the same
    stream by the matrix multiplication of the same operator; without a GPU, `aten::copy_` within `aten::addmm`.

    Costs: writing and reading the whole output once more. It is expected: `addmm` computes A·B + C into a buffer that
    must hold C already. The two operators are one call of the dispatcher, not one kernel.

    Fix: none needed; `F.linear` with a one-dimensional bias adds it within the multiplication's epilogue.

    Known problems: libraries that add the bias in the product's epilogue make no copy; on the CPU a copy of another of
    the product's inputs counts as well.
    """
    if not trace.has_gpu:
        yield from _seeded_on_cpu(trace, cpu_share)
        return
    copies = trace.derived(transfers)
    events, work = trace.events, trace.links.work
    chosen = copies.way("DtoD") & (copies.operator >= 0)
    chosen &= events.are(BIASED_PRODUCT, np.maximum(copies.operator, 0))
    if not chosen.any():
        return
    following = _next_on_stream(trace)
    operator = trace.derived(device_time).operator
    at = np.searchsorted(np.sort(work), copies.rows[chosen])
    at = np.argsort(work, kind="stable")[at]
    after = following[at]
    good = (after >= 0) & (operator[after] == operator[at])
    good[good] = [decode(trace.name(int(row))).operation == "matmul" for row in work[after[good]]]
    rows = copies.rows[chosen][good]
    when = trace.when(rows)
    time_us = when.total / 1000
    if not len(rows) or time_us < share * trace.gpu.busy.clip(trace.window.start, trace.window.end).total / 1000:
        return
    size = int(copies.bytes[chosen][good].sum())
    yield Finding(
        title=f"{len(rows)} matrix multiplications first copy the bias they add ({duration(time_us)})",
        severity="info",
        confidence="high",
        stretches=when,
        window=trace.window,
        evidence=evidence(trace, rows, note=size_text(size) if size else ""),
        cause="addmm adds its product to a buffer that must hold the added matrix already, so that is copied first: "
        "two pieces of device work in one operator, not a fused kernel.",
        fix="Expected. With a one-dimensional bias, F.linear (or addmm with beta=1 and a vector) adds it in the "
        "multiplication's epilogue instead.",
        linked=True,
    )


def _seeded_on_cpu(trace: Trace, share: float) -> Iterator[Finding]:
    events = trace.events
    rows = events.of(COPY_TENSOR)
    above = trace.calls.parent[rows]
    rows = rows[(above >= 0) & events.are(BIASED_PRODUCT, np.maximum(above, 0))]
    rows = rows[trace.in_steps(rows)]
    spent = trace.when(rows)
    part = trace.window.share(spent)
    if not len(rows) or part < share:
        return
    yield Finding(
        title=f"{len(rows)} matrix multiplications first copy the bias they add: {percent(part)} of the time",
        severity="info",
        confidence="high",
        stretches=spent,
        window=trace.window,
        evidence=evidence(trace, rows),
        cause="addmm computes A·B + C into a buffer that holds C already: one call of the dispatcher, a copy and a "
        "product. F.linear with a bias is such an addmm.",
        fix="Expected. Where it matters, Linear(bias=False) before a normalisation, whose own bias does the same, or "
        "torch.compile, which may add the bias with the next operators.",
        linked=True,
    )


@rule(
    "C8",
    "out-of-place-clone",
    source="aten::clone inside an out-of-place operator such as masked_fill",
    needs={"gpu"},
    frees="device",
)
def out_of_place_clone(trace: Trace, *, share: float = 0.01) -> Iterator[Finding]:
    """Out-of-place operators copy their whole input first.

    Sees: `aten::clone` inside `aten::masked_fill`, `aten::index_put`, `aten::scatter` and similar operators, and the
    device work it launches, in 1% of the window or more.

    Costs: the tensor is read and written once more than the operation needs.

    Fix: the in-place variant (`masked_fill_`) where autograd doesn't need the input, or `torch.compile`.

    Known problems: whether autograd needs the input, so that in-place isn't possible, isn't in a trace.
    """
    events, parent = trace.events, trace.calls.parent
    clones = events.of(CLONE)
    above = parent[clones]
    clones = clones[(above >= 0) & events.are(OUT_OF_PLACE, np.maximum(above, 0))]
    rows = _launched_in(trace, clones)
    when = trace.when(rows)
    time_us = when.total / 1000
    if not len(rows) or time_us < share * trace.window.us:
        return
    names = sorted({short_operator(trace.name(int(row))) for row in parent[clones]})
    yield Finding(
        title=f"Operators copy their input first: {percent(time_us / trace.window.us)} of the time "
        f"({', '.join(names[:3])})",
        confidence="high",
        stretches=when,
        window=trace.window,
        evidence=evidence(
            trace, parent[clones], times=trace.derived(device_time).total[clones], note="device time of the copy"
        ),
        cause="The operators leave their input as it is, so they work on a copy of it." + caveat(trace),
        fix=f"Where the input isn't needed afterwards, the in-place variant ({names[0]}_), under no_grad or where "
        "autograd allows it; torch.compile fuses the copy with the operation.",
        linked=True,
    )


def _launched_in(trace: Trace, operators: Int32) -> Int32:
    """Device work launched inside some operators, at any depth."""
    chosen = np.zeros(len(trace.events) + 1, np.bool_)
    for row in operators.tolist():
        chosen[trace.calls.inside(row)] = True
    found: Int32 = trace.links.work[chosen[trace.links.launch]]
    return found


def _next_on_stream(trace: Trace) -> Int32:
    """For each piece of device work the index of the next on its stream, or -1."""
    work = trace.links.work
    stream = streams_of(trace.events, work)
    order = np.argsort(stream, kind="stable")
    found = np.full(len(work), -1, np.int32)
    same = stream[order][1:] == stream[order][:-1]
    found[order[:-1][same]] = order[1:][same]
    return found
