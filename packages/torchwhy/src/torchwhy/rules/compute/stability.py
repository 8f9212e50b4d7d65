"""The same kernel, now faster and now slower; and convolutions that are still being tried out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from torchwhy.finding import Finding
from torchwhy.rules.compute.kernels import shown
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.kernels import kernels_of
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.arithmetic import LIBRARY_CONVOLUTION
from torchwhy.trace.model.steps import Step
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import duration_ns, percent

__all__ = ["cudnn_benchmark", "same_kernel_varies"]


_TOOLS = {"nvidia": "nvidia-smi -q -d CLOCK,PERFORMANCE", "amd": "rocm-smi --showclocks --showpower"}

SURE = 5
"""Steps from which on one outlier doesn't decide."""


@rule(
    "D14",
    "same-kernel-varies",
    source="p90 over p50 above 1.3 at the same place of equal steps; clocks seen to cost 1084 instead of 580 us",
    needs={"gpu"},
    frees="device",
)
def same_kernel_varies(trace: Trace, *, ratio: float = 1.3, steps: float = 3, share: float = 0.05) -> Iterator[Finding]:
    """The same kernels take different times in different steps.

    Sees: three or more steps that launch the same kernels in the same order, and kernels whose 90th percentile over the
    steps is 1.3 times their median, if the time above the medians is at least 5% of these kernels' time.

    Costs: a mean that describes no step. The work is the same, so the device differs: its clock, power or
    temperature limits, or another program's work on it.

    Fix: compare medians; let the device warm up; look at `nvidia-smi -q -d CLOCK,PERFORMANCE` for throttling, lock the
    clocks for benchmarks (`nvidia-smi -lgc`), and make sure that no other program uses the device.

    Known problems: with three or four steps one outlier decides, so the confidence is low then. Inputs of other values,
    such as sparse ones, also change a kernel's time.
    """
    alike, rows = _equal_steps(trace, int(steps))
    if not rows.size:
        return
    spent = trace.events.dur[rows].astype(np.float64)
    median = np.median(spent, axis=0)
    varies = (np.quantile(spent, 0.9, axis=0) > ratio * median) & (median >= 2000)
    excess = np.maximum(spent - median, 0)[:, varies]
    if not varies.any() or excess.sum() < share * spent.sum():
        return
    slow = rows[:, varies][excess > 0]
    slowest = int(spent.sum(axis=1).argmax())
    most = spent[:, varies][:, int(excess.sum(axis=0).argmax())]
    yield Finding(
        title="Equal kernels take very different times in different steps: "
        f"{int(varies.sum())} of {rows.shape[1]} per step",
        confidence="medium" if len(rows) >= SURE else "low",
        time_us=min(float(excess.sum()) / 1000, trace.window.us),
        stretches=trace.when(slow),
        window=trace.window,
        evidence=shown(trace, rows[:, varies].reshape(-1)),
        cause=f"Name and order of the kernels are equal in {rows.shape[0]} steps, so the device was slower, most in "
        f"{_slowest(alike, slowest)}: its clock, a limit of power or temperature, or other work on it. The kernel that "
        f"varies most takes {duration_ns(np.median(most))} at the median, {duration_ns(most.mean())} on average, from "
        f"{duration_ns(most.min())} to {duration_ns(most.max())}.",
        fix=f"Give medians instead of means, warm the device up, check {_TOOLS.get(trace.info.vendor, 'its clock')} "
        "for throttling, and lock the clocks for benchmarks.",
    )


@rule(
    "D17",
    "cudnn-benchmark",
    source="several algorithms tried within one call of a convolution",
    needs={"gpu"},
    frees="device",
)
def cudnn_benchmark(trace: Trace, *, algorithms: float = 3, share: float = 0.005) -> Iterator[Finding]:
    """Convolutions are still choosing their algorithm.

    Sees: calls of `aten::cudnn_convolution` (or MIOpen's) that each launch three or more different convolution kernels
    with different tiles; one call normally launches one, and helpers.

    Costs: each new shape is tried with every algorithm, waiting for each.

    Fix: run every shape once before measuring. `torch.backends.cudnn.benchmark = True` pays for fixed shapes only; with
    changing ones, pad to a few or leave it off.

    Known problems: a convolution that its library splits into three kernels with tiles looks like three tries.
    """
    kernels = trace.derived(kernels_of)
    main = kernels.that(lambda name: name.operation == "convolution" and bool(name.tile))
    main &= kernels.operator >= 0
    operators = kernels.operator[main]
    named = trace.events.are(LIBRARY_CONVOLUTION, operators)
    pairs = {*zip(operators[named].tolist(), kernels.which[main][named].tolist(), strict=True)}
    tried = Counter(row for row, _ in pairs)
    rows = np.array(sorted(row for row, count in tried.items() if count >= algorithms), np.int32)
    if not len(rows):
        return
    spans = trace.events.times_of(rows)
    spans = spans.clip(trace.window.start, trace.window.end)
    part = trace.window.share(spans)
    if part < share:
        return
    yield Finding(
        title=f"{len(rows)} convolutions try up to {max(tried.values())} algorithms each: {percent(part)} of the time",
        confidence="medium",
        stretches=spans,
        window=trace.window,
        evidence=evidence(trace, rows),
        cause="torch.backends.cudnn.benchmark is on and these shapes are new to it.",
        fix="Run each shape once before the window (more warm-up steps); if shapes keep changing, pad them to a few or "
        "switch torch.backends.cudnn.benchmark off.",
        linked=True,
    )


def _slowest(steps: list[Step], i: int) -> str:
    """The words for one of some steps."""
    number = steps[i].number
    return f"number {i + 1} of them" if number is None else f"step {number}"


def _equal_steps(trace: Trace, least: int) -> tuple[list[Step], npt.NDArray[np.int64] | Int32]:
    """The steps that launch the same kernels in the same order, and these by step and place; empty if too few do."""
    kernels, found = trace.derived(kernels_of), trace.steps_found
    nothing: tuple[list[Step], Int32] = [], np.zeros((0, 0), np.int32)
    launch = trace.links.of(kernels.rows)
    if len(found) < least or not len(launch):
        return nothing
    known = launch >= 0
    rows, which, launch = kernels.rows[known], kernels.which[known], launch[known]
    step = trace.step_of(launch)
    order = np.lexsort((trace.events.ts[rows], trace.events.ts[launch], step))
    rows, which, step = rows[order], which[order], step[order]
    bounds = np.searchsorted(step, np.arange(len(found) + 1))
    parts = [
        (one, slice(a, b)) for one, a, b in zip(found, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True) if b > a
    ]
    usual, count = Counter(which[part].tobytes() for _, part in parts).most_common(1)[0] if parts else (b"", 0)
    if count < least:
        return nothing
    alike = [(one, rows[part]) for one, part in parts if which[part].tobytes() == usual]
    return [one for one, _ in alike], np.stack([mine for _, mine in alike])
