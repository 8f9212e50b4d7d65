"""The kernel that takes the most time, and how many kernels a step has."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.compute.kernels import shown
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.rules.vendor import counters_of, matrix_units
from torchwhy.trace.derived.kernels import kernels_of
from torchwhy.trace.file.columns import Int32, Int64
from torchwhy.trace.meaning.annotations import STEP
from torchwhy.trace.meaning.kernels import MEMORY_BOUND, KernelName
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.operators import LEARNING
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["hotspot", "kernel_budget"]

DECLARED = "kernels_per_step"
"""Key of the trace's metadata (`prof.add_metadata_json`) that says how many kernels a step should have."""

SIXTEEN_BITS = ("float16", "bfloat16", "float8")
"""Types beside which tensor cores have no faster one, or one that not every model bears."""


@rule(
    "D1",
    "hotspot",
    source="one kernel with 30% of the kernels' time: the cheat sheet's first line",
    needs={"gpu"},
    frees="nothing",
)
def hotspot(trace: Trace, *, share: float = 0.3, of_window: float = 0.1) -> Iterator[Finding]:
    """One kernel takes much of the device's time.

    Sees: a kernel with more than 30% of all kernels' time and 10% of the window. Communication doesn't count.

    Costs: nothing by itself. A faster kernel gains most here; making another one faster gains little.

    Fix: look at its operator, shapes and type: is the work needed, in this precision, in this layout, in one kernel?

    Known problems: one name may stand for several shapes; a kernel that runs at the same time as others counts in full.
    """
    kernels = trace.derived(kernels_of)
    if not kernels.total or len(kernels.names) < 2:
        return
    spent = np.bincount(kernels.which, weights=kernels.spent, minlength=len(kernels.names))
    i = int(spent.argmax())
    name, rows = kernels.names[i], kernels.rows[kernels.which == i]
    when = trace.when(rows)
    part, time_us = float(spent[i]) / kernels.total, when.total / 1000
    if part < share or time_us < of_window * trace.window.us:
        return
    top = _callers(trace, rows, kernels.operator[kernels.which == i], kernels.spent[kernels.which == i])
    variants = len(np.unique(trace.events.name[rows]))
    one = "One kernel takes" if variants == 1 else f"{variants} variants of one kernel take"
    yield Finding(
        title=f"{one} {percent(part)} of the compute kernels' time: {name.short}",
        severity="info",
        confidence="high",
        stretches=when,
        window=trace.window,
        evidence=shown(trace, rows),
        cause=f"{name.description[:1].upper()}{name.description[1:]}{top}.",
        fix=_advice(name, matrix_units(trace), learns=trace.events.any_of(LEARNING)) + _counters(trace, rows),
        linked=True,  # its own name says so
    )


@rule("D20", "kernel-budget", source="the user's own count: guess first, then look", needs={"gpu"}, frees="nothing")
def kernel_budget(trace: Trace, *, kernels_per_step: float = 0) -> Iterator[Finding]:
    """A step launches another number of kernels than it should.

    Sees: steps whose number of kernels differs from `kernels_per_step`, a threshold of this rule or a value of the
    trace's metadata (`prof.add_metadata_json("kernels_per_step", "3")`). Silent unless one of them is given.

    Costs: a kernel more than expected is a fusion that was lost, a hidden copy, a conversion of type or layout.

    Fix: compare the step's kernels with what was expected, one by one.

    Known problems: kernels of replayed graphs count for the step in which they were launched, copies and fills not at
    all.
    """
    expected = int(kernels_per_step) or _declared(trace)
    steps = trace.steps_found
    if expected <= 0 or not steps:
        return
    links, events = trace.links, trace.events
    work = (events.kind[links.work] == Kind.KERNEL) & (links.launch >= 0)
    rows, step = links.work[work], trace.step_of(links.launch[work])
    count = np.bincount(step[step >= 0], minlength=len(steps))
    wrong = np.flatnonzero(count != expected)
    if not len(wrong):
        return
    chosen = rows[np.isin(step, wrong)]
    usual, when = int(np.median(count[wrong])), trace.when(chosen)
    yield Finding(
        title=f"{len(wrong)} of {len(steps)} steps launch {usual} kernels instead of {expected}",
        severity="medium",
        confidence="high",
        stretches=when,
        window=trace.window,
        evidence=evidence(trace, chosen, limit=10)
        or evidence(trace, [step.row for step in steps if step.row >= 0], limit=10),
        cause="More kernels: a fusion is gone, or a copy or conversion came in. Fewer: something isn't computed, or "
        "runs fused.",
        fix="Compare the kernels in the evidence with what the step should launch; `torchwhy diff` shows what changed.",
        linked=True,
    )


def _callers(trace: Trace, rows: Int32, operators: Int32, spent: Int64) -> str:
    """By whom kernels were launched: the operator or label with the most of their time, and how much of it."""
    labels = trace.events.kind == Kind.ANNOTATION
    labels[trace.events.of(STEP)] = False
    launch = trace.links.of(rows)
    around = np.where(launch >= 0, trace.calls.nearest(labels)[np.maximum(launch, 0)], -1)
    callers = np.where(operators >= 0, operators, around)
    known = callers >= 0
    if not known.any():
        return ""
    time = np.bincount(trace.events.name[callers[known]], weights=spent[known])
    most, part = int(time.argmax()), float(time.max()) / max(int(spent.sum()), 1)
    return f", launched by {trace.events.texts[most]}" + ("" if part >= 1 else f" for {percent(part)} of its time")


def _advice(name: KernelName, cores: str, *, learns: bool) -> str:
    if name.operation in ("matmul", "convolution") and name.tensor_core and name.dtype in SIXTEEN_BITS:
        more = "sizes (multiples of 64)" if name.operation == "matmul" else "channels (multiples of 64), channels_last"
        smaller = "" if learns else " For inference, quantised weights (torchao) or a pruned model need less of it."
        return f"It is on {cores} in 16 bits already; check its {more}, and whether it is all needed." + smaller
    memory = "It moves memory more than it computes: fusing it with its neighbours (torch.compile) or avoiding it pays."
    return {
        "matmul": f"Check its type (16 bits on {cores}?), its sizes (multiples of 64?), whether it is all needed.",
        "convolution": f"Check its type (16 bits on {cores}?), channels_last, and the number of channels.",
        "attention": "Check is_causal instead of a mask, 16-bit inputs, and a sequence no longer than needed.",
        "softmax": "If it belongs to attention, F.scaled_dot_product_attention computes it without writing it out.",
        **dict.fromkeys(MEMORY_BOUND - {"softmax"}, memory),
    }.get(name.operation, "Look at what launches it, how often and with which shapes, and whether all of it is needed.")


def _counters(trace: Trace, rows: Int32) -> str:
    """How to see what limits the kernel that takes the most time among these."""
    spent = np.bincount(trace.events.name[rows], weights=trace.events.dur[rows])
    command = counters_of(trace, trace.events.texts[int(spent.argmax())])
    return f" What limits it: {command}" if command else ""


def _declared(trace: Trace) -> int:
    value = trace.info.top.get(DECLARED, 0)
    return int(value) if isinstance(value, int | float | str) and str(value).strip().isdigit() else 0
