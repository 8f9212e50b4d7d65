"""What kernels reach of what the device can do, where shapes tell how much there is to do."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchfx.profiler.rules.compute.efficiency import PRODUCTS, Group, groups, used_peaks
from torchfx.profiler.rules.compute.flops import flops_of
from torchfx.profiler.rules.compute.kernels import caveat, kernels_of, matters, rank, shown, stake
from torchfx.profiler.rules.finding import Finding
from torchfx.profiler.rules.rule import rule
from torchfx.profiler.trace.derived.shapes import shapes
from torchfx.profiler.trace.model.trace import Trace
from torchfx.profiler.trace.peaks import Peaks
from torchfx.profiler.wording import duration_ns, percent, shortened

__all__ = ["low_mfu", "low_roofline"]

REACHABLE = 0.7
"""Of the roofline, what good kernels come to: cuBLAS in bfloat16 on H100 and A100, PyTorch's elementwise kernels."""

ENOUGH_WORK = 5000
"""Nanoseconds per call at the roofline; with less to do a kernel's latency is what counts."""

LONG_ENOUGH = 20_000
"""Nanoseconds per call; shorter ones don't fill the device whatever they are."""


@rule(
    "D13",
    "low-roofline",
    source="below 30% of the roofline as in TraceLens; 50% of the bandwidth for elementwise work",
    needs={"gpu"},
)
def low_roofline(
    trace: Trace, *, products: float = 0.3, bandwidth: float = 0.5, share: float = 0.05
) -> Iterator[Finding]:
    """Operators stay far below what the device can do with their shapes.

    Sees: matrix products and attention whose operations per second are below 30% of what the roofline of their type
    allows, and elementwise operators, copies and softmax that move less than half of the memory's bandwidth; each from
    5% of the kernels' time on, for calls of 20 us or more that have at least 5 us of work at the roofline. Needs
    `record_shapes=True` and a known device.

    Costs: counted is the difference to 70% of the roofline, which good kernels reach.

    Fix: other shapes (multiples of 64, larger, contiguous), another type; for elementwise work on strided tensors one
    layout.
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
    rows = kernels.rows[np.isin(kernels.operator, np.concatenate([group.operators for group in slow]))]
    lost = sum(group.spent - group.ideal / REACHABLE for group in slow) / 1000
    time_us = min(lost, stake(trace, rows))
    if not matters(trace, time_us):
        return
    worst = slow[0]
    what = "memory bandwidth" if worst.bound != "arithmetic" else f"{worst.dtype} arithmetic"
    sizes = " x ".join(str(list(shape)) for shape in shapes(trace, int(worst.operators[0]))[:3])
    yield Finding(
        title=f"{shortened(worst.name, 60)} reaches {percent(worst.reached)} of peak {what}, "
        f"taking {percent(worst.spent / kernels.total)} of kernel time",
        severity=rank(trace, time_us),
        confidence="medium",
        time_us=time_us,
        window=trace.window,
        evidence=shown(trace, rows),
        cause=f"Shapes {sizes} need {duration_ns(worst.ideal / len(worst.operators))} per call at the data sheet's "
        f"rate and take {duration_ns(worst.spent / len(worst.operators))}." + caveat(trace),
        fix=_faster(trace, worst),
        linked=True,
    )


@rule(
    "D19",
    "low-mfu",
    source="model FLOPs utilisation below 30% as in gpuprof, from the shapes of products",
    needs={"gpu"},
)
def low_mfu(trace: Trace, *, utilisation: float = 0.3, covered: float = 0.9) -> Iterator[Finding]:
    """The device's arithmetic units are used little.

    Sees: operations of all matrix products and attention, by their shapes, over the device's peak for their types and
    the length of the window, below 30%. Silent unless the shapes of 90% of the time in products are known, products
    take 30% of the kernels' time, and the device is busy for half of the window.

    Costs: this is the distance to the device's best case; 40 to 60% is good for training large models.

    Fix: see the other findings: what isn't a product, products that are too small, and times without any.
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
    ideal = sum(_arithmetic(trace, group, peaks) for group in known)
    used = ideal / (trace.window.us * 1000 * max(len(trace.gpus), 1))
    if used >= utilisation:
        return
    rows = kernels.rows[product]
    yield Finding(
        title=f"Products use {percent(used)} of what the device could compute in the window",
        severity="info",
        confidence="medium",
        time_us=max(stake(trace, rows) - ideal / 1000 / max(len(trace.gpus), 1), 0.0),
        window=trace.window,
        evidence=shown(trace, rows),
        cause=f"Products take {percent(spent / kernels.total)} of the kernels' time; by their shapes they would need "
        f"{duration_ns(ideal)} at the data sheet's rate.",
        fix="Take the findings about products' types, sizes and what runs between them in order of their time.",
        linked=True,
    )


def _arithmetic(trace: Trace, group: Group, peaks: Peaks) -> float:
    """Nanoseconds its operations would take at the peak rate."""
    needed = flops_of(group.name, shapes(trace, int(group.operators[0])))
    return needed[0] / peaks.flops(group.dtype) * 1e9 * len(group.operators) if needed else 0.0


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
