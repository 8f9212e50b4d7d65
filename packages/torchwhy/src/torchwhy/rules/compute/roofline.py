"""What kernels reach of what the device can do, by the amount of work that shapes show."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.compute.attention import pieces_of_attention
from torchwhy.rules.compute.kernels import about_kernels, shown
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.device_peaks import data_sheet, used_peaks
from torchwhy.trace.derived.gaps import device_window
from torchwhy.trace.derived.kernels import kernels_of
from torchwhy.trace.derived.roofline import PRODUCTS, Group, kinds_and_owners, roofline_groups
from torchwhy.trace.derived.shapes import shapes
from torchwhy.trace.meaning.arithmetic import ATTENTION_IN_PARTS
from torchwhy.trace.model.trace import Trace
from torchwhy.trace.peaks import Peaks
from torchwhy.wording import duration_ns, percent, shortened

__all__ = ["low_mfu", "low_roofline"]

ENOUGH_WORK = 5000
"""Nanoseconds per call at the roofline; shorter calls are dominated by the kernel's latency."""

SHOWN = 3
"""Groups of calls that become findings, those with most to gain."""

LARGE = 100_000
"""Nanoseconds of work at the roofline per call; no larger product would use the device better."""

LONG_ENOUGH = 20_000
"""Nanoseconds per call; shorter ones don't fill the device whatever they are."""


@rule(
    "D13",
    "low-roofline",
    source="time to 70% of the roofline, which cuBLAS and PyTorch's elementwise kernels reach; 5% of the kernels' time",
    needs={"gpu"},
    frees="device",
)
def low_roofline(trace: Trace, *, share: float = 0.05) -> Iterator[Finding]:
    """Operators take longer than the device needs for their shapes.

    Sees: matrix products, convolutions, attention, mixtures of experts, and operators that only read and write their
    tensors, whose calls with the same shapes and types would take 5% of the kernels' time less at 70% of the roofline;
    for calls of 20 us or more that have at least 5 us of work at the roofline. Needs `record_shapes=True` and a device
    whose peaks are known: by its data sheet, or measured (`--device`, `[tool.torchwhy.device]`). Attention that
    unfused-attention and sdpa-math-backend report is left to these rules.

    Costs: counted is the difference to 70% of the roofline, which good kernels reach.

    Fix: other shapes (multiples of 64, larger, contiguous), another type; for elementwise work on strided tensors one
    layout.

    Known problems: shapes say what must be computed, not what was: sparsity and masks need less, and the share comes
    out too high. Convolutions are judged where strides and paddings are recorded, or what follows shows the shape of
    their output. Data-sheet peaks assume the boost clock.
    """
    kernels, peaks = trace.derived(kernels_of), used_peaks(trace)
    if peaks is None or not kernels.total:
        return
    elsewhere = trace.derived(pieces_of_attention).rows
    slow = [
        group
        for group in trace.derived(roofline_groups)
        if group.gain >= share * kernels.total
        and group.spent >= LONG_ENOUGH * len(group.operators)
        and group.ideal >= ENOUGH_WORK * len(group.operators)
        and not ATTENTION_IN_PARTS.names(group.name)
        and 2 * np.count_nonzero(np.isin(group.kernels, elsewhere)) < len(group.kernels)
    ]
    for group in sorted(slow, key=lambda group: -group.gain)[:SHOWN]:
        what = f"{group.dtype} arithmetic" if group.bound == "compute" else "memory bandwidth"
        sizes = " x ".join(str(list(shape)) for shape in shapes(trace, int(group.operators[0]))[:3])
        yield from about_kernels(
            trace,
            group.kernels,
            title=f"{shortened(group.name, 36)} reaches {percent(group.reached)} of {peaks.source} peak {what}, "
            f"taking {percent(group.spent / kernels.total)} of the compute kernels' time",
            confidence="low" if peaks.assumed else "medium",
            cause=f"Shapes {sizes} need {duration_ns(group.ideal / len(group.operators))} per call at "
            f"{peaks.source} rate and take {duration_ns(group.spent / len(group.operators))}."
            + _beside(trace, peaks, group),
            fix=_faster(trace, group),
            part=group.gain / group.spent,
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
    if peaks is None or not kernels.total:
        return
    window = device_window(trace)
    if window.share(trace.gpu.busy.clip(window.start, window.end)) < 0.5:
        return
    kinds, _ = trace.derived(kinds_and_owners)
    product = np.isin(np.array(kinds, object), PRODUCTS)
    spent = float(kernels.spent[product].sum())
    known = [group for group in trace.derived(roofline_groups) if group.work and group.ideal]
    if spent < 0.3 * kernels.total or sum(group.spent for group in known) < covered * spent:
        return
    ideal = sum(group.work / peaks.flops(group.dtype) * 1e9 for group in known)
    used = ideal / (window.us * 1000 * max(len(trace.gpus), 1))
    if used >= utilisation:
        return
    rows = kernels.rows[product]
    when = trace.when(rows)
    yield Finding(
        title=f"Products use {percent(used)} of what the device could compute in the window",
        severity="info",
        confidence="medium",
        stretches=when,
        window=window,
        evidence=shown(trace, rows),
        cause=f"Products take {percent(spent / kernels.total)} of the compute kernels' time; by their shapes they "
        f"would need {duration_ns(ideal)} at {peaks.source} rate.",
        fix="Take the findings about products' types, sizes and what runs between them in order of their time.",
        linked=True,
    )


def _beside(trace: Trace, peaks: Peaks, group: Group) -> str:
    """The data sheet's peaks, where measured peaks are used."""
    sheet = data_sheet(trace)
    if not peaks.measured or sheet is None:
        return ""
    computes = group.bound == "compute"
    here, there = (one.flops(group.dtype) if computes else one.bandwidth for one in (peaks, sheet))
    return f" Of the data sheet's peak that is {percent(group.reached * here / there)}." if there else ""


def _faster(trace: Trace, group: Group) -> str:
    """Advice by what limits a group and what its shapes are already."""
    if group.kind not in PRODUCTS:
        return (
            "Contiguous tensors of one layout, rows of a multiple of 16 bytes, and fusion with the neighbours "
            "(torch.compile; in attention F.scaled_dot_product_attention)."
        )
    if "attention" in group.name:
        other = ' (torch.backends.cuda.preferred_rocm_fa_library("ck"))' if trace.info.vendor == "amd" else ""
        return f"Try the other fused implementations: torch.nn.attention.sdpa_kernel{other}; is_causal if it applies."
    if any(size % 64 for shape in shapes(trace, int(group.operators[0])) for size in shape if size > 1):
        return "Dimensions that are multiples of 64, one larger product instead of many small ones."
    tune = "torch.compile(mode='max-autotune'), which tries more kernels"
    if group.ideal >= LARGE * len(group.operators):
        return f"Try {tune}: the product is large enough."
    return f"A larger batch, one product instead of many, or {tune}."
