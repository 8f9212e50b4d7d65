"""Kernels too small for the device."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from torchwhy.finding import Finding
from torchwhy.rules.compute.kernels import about_kernels
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.kernels import Kernels, kernels_of
from torchwhy.trace.file.columns import Flags, Int32
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.model.device import devices_of
from torchwhy.trace.model.events import parse_list
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["occupancy", "small_grid"]

SIMPLE = frozenset({"elementwise", "reduction", "softmax", "normalization", "copy", "indexing", "embedding"})
LONG_ENOUGH = 10_000
"""Nanoseconds; shorter kernels are a matter of launches, whatever their grid."""


@rule(
    "D11",
    "small-grid",
    source="`blocks per SM` below 1, estimated SM efficiency in the TensorBoard plugin",
    needs={"gpu"},
    frees="device",
)
def small_grid(trace: Trace, *, blocks: float = 0.7, share: float = 0.05) -> Iterator[Finding]:
    """Kernels with fewer blocks than the device has multiprocessors take much of its time.

    Sees: kernels longer than 10 us with less than 0.7 blocks per multiprocessor, each with 5% or more of the kernels'
    time. Between 0.7 and 1 little is lost.

    Costs: multiprocessors without a block do nothing; counted is the part of the device that stands idle while nothing
    else runs on it.

    Fix: more work per call: a larger batch, several signals or files at once; for few outputs and a long sum, a split
    along the sum (split-K); or independent work on other streams.

    Known problems: persistent kernels with one block per multiprocessor are fine. Communication and kernels that run
    at the same time as others for half of their time are left out.
    """
    kernels = trace.derived(kernels_of)
    per_sm = _blocks(trace, kernels.rows)
    # A kernel that waits on purpose (torch.cuda._sleep) is no work.
    real = kernels.that(lambda name: not name.spins)
    small = real & (per_sm < blocks) & (per_sm > 0) & (trace.events.dur[kernels.rows] >= LONG_ENOUGH)
    small &= ~_accompanied(trace, kernels.rows)
    chosen = small & _often(kernels, small, share)
    if not chosen.any():
        return
    rows = kernels.rows[chosen]
    used = float(np.average(per_sm[chosen], weights=np.maximum(kernels.spent[chosen], 1)))
    yield from about_kernels(
        trace,
        rows,
        title=f"Kernels that use {percent(used)} of the GPU on average take {percent(kernels.share(chosen))} of the "
        "compute kernels' time",
        confidence="medium",
        cause=f"On average, by time, they have {used:.2f} blocks per multiprocessor: those without one have nothing "
        "to do meanwhile.",
        fix="Give each call more to do: a larger batch or several signals at once; where that isn't possible, run "
        "independent work on another stream.",
        part=1 - used,
    )


@rule(
    "D12",
    "occupancy",
    source="estimated occupancy below 25% of simple kernels with fewer than 2 blocks per SM",
    needs={"gpu"},
    frees="device",
)
def occupancy(trace: Trace, *, below_percent: float = 25, blocks: float = 2, share: float = 0.05) -> Iterator[Finding]:
    """Simple kernels keep too few threads on the device to hide the memory's latency.

    Sees: PyTorch's elementwise, reduction, softmax or normalization kernels longer than 10 us with an estimated
    occupancy above 0 and below 25% and fewer than 2 blocks per multiprocessor, each with 5% of the kernels' time. An
    occupancy of 0 means that the profiler has no figure. Matrix products and fused attention work well at low
    occupancy and are never meant.

    Costs: such kernels wait for memory, and only other threads can fill the wait. At stake is half of their time.

    Fix: larger tensors per call; for reductions over a long dimension another shape; otherwise fusion.

    Known problems: the occupancy is an estimate of the profiler's before the kernel runs.
    """
    events, kernels = trace.events, trace.derived(kernels_of)
    percentage = events.floats("est. achieved occupancy %", kernels.rows)
    per_sm = _blocks(trace, kernels.rows)
    simple = kernels.that(lambda name: name.library == "PyTorch" and name.operation in SIMPLE)
    low = simple & (percentage > 0) & (percentage < below_percent) & (events.dur[kernels.rows] >= LONG_ENOUGH)
    low &= (per_sm >= small_grid.in_force["blocks"]) & (per_sm < blocks)
    chosen = low & _often(kernels, low, share)
    if not chosen.any():
        return
    rows = kernels.rows[chosen]
    yield from about_kernels(
        trace,
        rows,
        title=f"Simple kernels at {np.nanmean(percentage[chosen]):.0f}% occupancy take "
        f"{percent(kernels.share(chosen))} of the compute kernels' time",
        confidence="low",
        most="low",
        part=1 / 2,
        cause="Their grids have barely more blocks than the device has multiprocessors, which leaves few threads to "
        "wait for memory at the same time.",
        fix="Work on larger tensors per call, or fuse these kernels with their neighbours (torch.compile).",
    )


def _accompanied(trace: Trace, rows: Int32) -> Flags:
    """Whether other kernels of the device, communication included, run during half of each one's time or more."""
    events = trace.events
    found = np.zeros(len(rows), np.bool_)
    every = events.rows(Kind.KERNEL)
    device, own = devices_of(events, every), devices_of(events, rows)
    for number in np.unique(own).tolist():
        # How many run at each moment: where more than one does, the first is not alone.
        mine = every[device == number]
        at = np.concatenate((events.ts[mine], events.end[mine]))
        order = np.argsort(at, kind="stable")
        running = np.cumsum(np.concatenate((np.ones(len(mine), np.int64), -np.ones(len(mine), np.int64)))[order])
        several = np.flatnonzero(running[:-1] > 1)
        both = Intervals.union(at[order][several], at[order][several + 1])
        here = np.flatnonzero(own == number)
        found[here] = 2 * both.overlap(events.ts[rows[here]], events.end[rows[here]]) >= events.dur[rows[here]]
    return found


def _often(kernels: Kernels, chosen: npt.NDArray[np.bool_], share: float) -> npt.NDArray[np.bool_]:
    """Whether the chosen kernels of each one's name take a share of all kernels' time."""
    spent = np.bincount(kernels.which[chosen], weights=kernels.spent[chosen], minlength=len(kernels.names))
    found: npt.NDArray[np.bool_] = (spent >= share * kernels.total)[kernels.which]
    return found & bool(kernels.total)


def _blocks(trace: Trace, rows: Int32) -> npt.NDArray[np.float64]:
    """Blocks per multiprocessor: as recorded or, on NVIDIA's devices, from the grid; NaN where unknown."""
    events = trace.events
    found = events.floats("blocks per SM", rows)
    if np.isnan(found).any() and trace.info.vendor == "nvidia":
        sms = {device.id: device.multiprocessors for device in trace.info.devices}
        ids = events.text_ids("grid", rows)
        size = {i: _product(events.texts[i]) for i in np.unique(ids).tolist() if i >= 0}
        device = devices_of(events, rows)
        for i in np.flatnonzero(np.isnan(found) & (ids >= 0)).tolist():
            count = sms.get(int(device[i]), 0)
            found[i] = size[int(ids[i])] / count if count else np.nan
    return found


def _product(grid: str) -> float:
    numbers = [item for item in parse_list(grid) if isinstance(item, int)]
    return float(np.prod(numbers)) if numbers else float("nan")
