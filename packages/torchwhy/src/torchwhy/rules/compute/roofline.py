"""What kernels reach of what the device can do, where shapes tell how much there is to do."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.compute.efficiency import PRODUCTS, Group, groups
from torchwhy.rules.compute.kernels import about_kernels, kernels_of, shown
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.device_peaks import data_sheet, used_peaks
from torchwhy.trace.derived.shapes import shapes
from torchwhy.trace.model.trace import Trace
from torchwhy.trace.peaks import Peaks
from torchwhy.wording import duration_ns, percent, shortened

__all__ = ["low_mfu", "low_roofline"]

REACHABLE = 0.7
"""Of the roofline, what good kernels come to: cuBLAS in bfloat16 on H100 and A100, PyTorch's elementwise kernels."""

ENOUGH_WORK = 5000
"""Nanoseconds per call at the roofline; with less to do a kernel's latency is what counts."""

SHOWN = 3
"""Groups of calls that become findings, those with most to gain."""

LONG_ENOUGH = 20_000
"""Nanoseconds per call; shorter ones don't fill the device whatever they are."""


@rule(
    "D13",
    "low-roofline",
    source="below 30% of the roofline as in TraceLens; 50% of the bandwidth for elementwise work",
    needs={"gpu"},
    frees="device",
)
def low_roofline(
    trace: Trace, *, products: float = 0.3, bandwidth: float = 0.5, share: float = 0.05
) -> Iterator[Finding]:
    """Operators stay far below what the device can do with their shapes.

    Sees: matrix products, convolutions and attention whose operations per second are below 30% of what the roofline of
    their type allows, and elementwise operators, copies and softmax that move less than half of the memory's bandwidth;
    each from 5% of the kernels' time on, for calls of 20 us or more that have at least 5 us of work at the roofline.
    One finding per operator, shapes and types. Needs `record_shapes=True` and a device whose peaks are known: by its
    data sheet, or measured (`--device`, `[tool.torchwhy.device]`).

    Costs: counted is the difference to 70% of the roofline, which good kernels reach.

    Fix: other shapes (multiples of 64, larger, contiguous), another type; for elementwise work on strided tensors one
    layout.

    Known problems: shapes say what must be computed, not what was: sparsity, masks and causal attention need less, and
    the share comes out too high. Convolutions are judged where the shape of their output is known from what follows.
    Data-sheet peaks assume the boost clock.
    """
    kernels, peaks = trace.derived(kernels_of), used_peaks(trace)
    if peaks is None or not kernels.total or not trace.events.has("Input Dims"):
        return
    slow = [
        group
        for group in groups(trace, kernels, peaks)
        if group.spent >= share * kernels.total
        and group.spent >= LONG_ENOUGH * len(group.operators)
        and group.ideal >= ENOUGH_WORK * len(group.operators)
        and group.reached < (bandwidth if group.bound == "streaming" else products)
    ]
    if not slow:
        return
    slow.sort(key=lambda group: group.ideal - group.spent)
    for group in slow[:SHOWN]:
        what = "memory bandwidth" if group.bound != "arithmetic" else f"{group.dtype} arithmetic"
        sizes = " x ".join(str(list(shape)) for shape in shapes(trace, int(group.operators[0]))[:3])
        yield from about_kernels(
            trace,
            kernels.rows[np.isin(kernels.operator, group.operators)],
            title=f"{shortened(group.name, 36)} reaches {percent(group.reached)} of {peaks.source} peak {what}, "
            f"taking {percent(group.spent / kernels.total)} of kernel time",
            confidence="medium",
            cause=f"Shapes {sizes} need {duration_ns(group.ideal / len(group.operators))} per call at "
            f"{peaks.source} rate and take {duration_ns(group.spent / len(group.operators))}."
            + _beside(trace, peaks, group),
            fix=_faster(trace, group),
            at_most_us=(group.spent - group.ideal / REACHABLE) / 1000,
        )


@rule(
    "D19",
    "low-mfu",
    source="model FLOPs utilisation below 30% as in gpuprof, from the shapes of products",
    needs={"gpu"},
    frees="nothing",
)
def low_mfu(trace: Trace, *, utilisation: float = 0.3, covered: float = 0.9) -> Iterator[Finding]:
    """The device's arithmetic units are used little.

    Sees: operations of all matrix products, convolutions and attention, by their shapes, over the device's peak for
    their types and the length of the window, below 30%. Silent unless the shapes of 90% of the time in products are
    known, products take 30% of the kernels' time, and the device is busy for half of the window.

    Costs: this is the distance to the device's best case; 40 to 60% is good for training large models.

    Fix: see the other findings: what isn't a product, products that are too small, and times without any.

    Known problems: operators without known shapes are left out, so the figure is a lower bound; sparsity and causal
    attention make it too high.
    """
    kernels, peaks = trace.derived(kernels_of), used_peaks(trace)
    if peaks is None or not kernels.total or not trace.events.has("Input Dims"):
        return
    if trace.window.share(trace.gpu.busy.clip(trace.window.start, trace.window.end)) < 0.5:
        return
    product = kernels.that(lambda name: name.operation in PRODUCTS)
    spent = float(kernels.spent[product].sum())
    known = [group for group in groups(trace, kernels, peaks) if group.bound in ("arithmetic", "memory")]
    if spent < 0.3 * kernels.total or sum(group.spent for group in known) < covered * spent:
        return
    ideal = sum(group.work / peaks.flops(group.dtype) * 1e9 for group in known)
    used = ideal / (trace.window.us * 1000 * max(len(trace.gpus), 1))
    if used >= utilisation:
        return
    rows = kernels.rows[product]
    when = trace.when(rows)
    yield Finding(
        title=f"Products use {percent(used)} of what the device could compute in the window",
        severity="info",
        confidence="medium",
        time_us=max(when.total / 1000 - ideal / 1000 / max(len(trace.gpus), 1), 0.0),
        stretches=when,
        window=trace.window,
        evidence=shown(trace, rows),
        cause=f"Products take {percent(spent / kernels.total)} of the kernels' time; by their shapes they would need "
        f"{duration_ns(ideal)} at {peaks.source} rate.",
        fix="Take the findings about products' types, sizes and what runs between them in order of their time.",
        linked=True,
    )


def _beside(trace: Trace, peaks: Peaks, group: Group) -> str:
    """What the data sheet gives, where the peaks are measured ones."""
    sheet = data_sheet(trace)
    if not peaks.measured or sheet is None:
        return ""
    streaming = group.bound != "arithmetic"
    here, there = (one.bandwidth if streaming else one.flops(group.dtype) for one in (peaks, sheet))
    return f" Of the data sheet's peak that is {percent(group.reached * here / there)}." if there else ""


def _faster(trace: Trace, group: Group) -> str:
    """Advice by what limits a group and what its shapes are already."""
    if group.bound == "streaming":
        return (
            "Contiguous tensors of one layout, rows of a multiple of 16 bytes, and fusion with the neighbours "
            "(torch.compile; in attention F.scaled_dot_product_attention)."
        )
    if "attention" in group.name:
        other = ' (torch.backends.cuda.preferred_rocm_fa_library("ck"))' if trace.info.vendor == "amd" else ""
        return f"Try the other fused implementations: torch.nn.attention.sdpa_kernel{other}; is_causal if it applies."
    if any(size % 64 for shape in shapes(trace, int(group.operators[0])) for size in shape if size > 1):
        return "Dimensions that are multiples of 64, one larger product instead of many small ones."
    return (
        "A larger batch, one product instead of many, or torch.compile(mode='max-autotune'), which tries more kernels."
    )
