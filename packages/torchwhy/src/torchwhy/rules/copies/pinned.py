"""Copies to and from pageable memory, and pinned ones that are slow nevertheless."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.copies.transfers import (
    PAGEABLE,
    SMALL,
    Transfers,
    exposed,
    step_count,
    takes_long,
    transfers,
)
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.device_peaks import data_sheet
from torchwhy.trace.derived.replay import replay
from torchwhy.trace.file.columns import Flags, Int64
from torchwhy.trace.meaning.annotations import DATALOADER
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent, size_text

__all__ = ["low_bandwidth", "pageable_copy", "rate_text"]

PINNED_RATE: Final = {3: 12.0, 4: 25.0, 5: 50.0}
"""GB/s of pinned copies over 16 lanes, by generation of the bus: four fifths of the bus's rate."""


@rule(
    "C1",
    "pageable-copy",
    source="`Pageable` in the copy's name, as in Nsight Systems' rule on asynchronous copies; 1% of the window",
    needs={"gpu", "idle"},
    frees="all",
)
def pageable_copy(trace: Trace, *, share: float = 0.01, bytes_per_step: float = 1e6) -> Iterator[Finding]:
    """Data is copied between the device and host memory that isn't pinned.

    Sees: copies named `Pageable` that take 1% of the window while nothing else runs on the device, or that move a
    megabyte in every step. Scalars read back are left out, and so are copies to the host that take 5%: these belong to
    transfer-share, as most needn't be made.

    Costs: the driver copies through its own pinned buffer, at a fraction of the bus's speed, and the call returns
    only when the data has left, in both modes (`non_blocking` has no effect). At stake is the time by which the window
    would be shorter if the copies had the speed of the bus and the host didn't wait for them.

    Fix: `pin_memory=True` in the DataLoader and `.to(device, non_blocking=True)`; elsewhere tensors pinned once.

    Known problems: memory registered with the driver by other libraries may be named pageable. Overlap is judged by
    time alone: a copy at the same time as a kernel that waits for it counts as free.
    """
    copies = trace.derived(transfers)
    for way, text in (("HtoD", "to the device from"), ("DtoH", "from the device into")):
        if way == "DtoH" and takes_long(trace, way) is not None:
            continue
        chosen = copies.way(way) & (copies.host == PAGEABLE) & (copies.bytes >= SMALL)
        rows = copies.rows[chosen]
        alone = exposed(trace, rows)
        part = trace.window.share(alone)
        per_step = int(copies.bytes[chosen].sum()) / step_count(trace)
        recurring = per_step >= bytes_per_step and len(rows) >= len(trace.steps_found) > 0 and part >= share / 10
        if not len(rows) or (part < share and not recurring):
            continue
        each = " per step" if trace.steps_found else ""
        saved, stretches = _pinned(trace, copies, chosen)
        yield Finding(
            title=f"Copies {text} unpinned memory take {percent(part)} of the time with nothing else running: "
            f"{size_text(per_step)}{each}",
            confidence="high",
            time_us=saved / 1000,
            stretches=stretches,
            window=trace.window,
            evidence=evidence(trace, rows, note=rate_text(copies, chosen)),
            cause="The host's side of the copy is ordinary, pageable memory: the driver copies it through a buffer of "
            "its own, and the call waits until that is done.",
            fix=_fix(trace, way),
            linked=True,
        )


def _pinned(trace: Trace, copies: Transfers, chosen: Flags) -> tuple[float, Intervals]:
    """What pinned memory saves of some copies, nanoseconds; and when: the copies and the waits for them."""
    queue, start, end = trace.derived(replay), trace.window.start, trace.window.end
    rows = copies.rows[chosen]
    known = data_sheet(trace)
    rate = PINNED_RATE.get(known.pcie if known else 0, PINNED_RATE[4])
    begins, ends = trace.events.ts[rows], trace.events.end[rows]
    slower = Intervals.union(np.minimum(begins + (copies.bytes[chosen] / rate).astype(np.int64), ends), ends)
    slower = (slower - trace.gpu.compute).clip(start, end)
    copied = trace.when(rows)
    waits = queue.waits_for(copied)
    return queue.saved(device=slower, awaited=copied), copied | waits


@rule(
    "C2",
    "low-bandwidth",
    source="70% of what pinned copies reach: 8 GB/s on PCIe 3, 18 GB/s from PCIe 4 on; as in Holistic Trace Analysis",
    needs={"gpu"},
    frees="exposed",
)
def low_bandwidth(
    trace: Trace, *, pcie3: float = 8, pcie4: float = 18, smallest: float = 1e6, share: float = 0.01
) -> Iterator[Finding]:
    """Large copies between host and device are slower than the bus.

    Sees: copies of a megabyte or more whose bytes over time stay below 8 GB/s (PCIe 3) or 18 GB/s (PCIe 4 and later).
    Copies known to be pageable belong to pageable-copy; where the file doesn't show the memory, the cause says so.

    Costs: the time beyond what the bus needs, where nothing else ran meanwhile.

    Fix: fewer and larger copies from pinned memory; look for other traffic on the bus, a slot with fewer lanes
    (`nvidia-smi -q`, "Link Width"), or memory of the other processor socket.

    Known problems: the floors are for 16 lanes; laptops and some clouds have 8 or 4. NVLink to the host (GH200, GB200)
    is far faster than either floor.
    """
    copies = trace.derived(transfers)
    known = data_sheet(trace)
    floor = pcie4 if known and known.pcie >= 4 else pcie3
    chosen = copies.way("HtoD", "DtoH") & (copies.host != PAGEABLE) & (copies.bytes >= smallest) & (copies.spent > 0)
    speed = np.divide(copies.bytes, copies.spent, out=np.full(len(chosen), np.inf), where=copies.spent > 0)
    chosen &= speed < floor
    rows = copies.rows[chosen]
    if not len(rows):
        return
    average = int(copies.bytes[chosen].sum()) / int(copies.spent[chosen].sum())
    wasted = max(1 - average / (floor / 0.7), 0)
    if trace.window.share(exposed(trace, rows)) * wasted < share:
        return
    when = trace.when(rows)
    pinned = bool((copies.host[chosen] != 0).all())
    unknown = (
        ""
        if pinned
        else " The file doesn't show whether the host's memory is pinned; unpinned memory would explain it."
    )
    yield Finding(
        title=f"{len(rows)} large copies reach {average:.1f} GB/s, where the bus should give {floor:.0f} or more",
        confidence="medium",
        time_us=wasted * when.total / 1000,
        stretches=when,
        window=trace.window,
        evidence=evidence(trace, rows, note=rate_text(copies, chosen)),
        cause="Something slows the bus: other copies at the same time, fewer lanes, memory of the other socket."
        + unknown,
        fix="Make sure the memory is pinned and on the device's socket (numactl), that the device has all its lanes "
        "(nvidia-smi -q, or rocm-smi), and that no other copies run at the time.",
    )


def rate_text(copies: Transfers, chosen: Int64 | np.ndarray[tuple[int], np.dtype[np.bool_]]) -> str:
    """Bytes and speed of some copies, such as "115.6 MB at 10.1 GB/s"; "" where bytes aren't recorded."""
    size, spent = int(copies.bytes[chosen].sum()), int(copies.spent[chosen].sum())
    return f"{size_text(size)} at {size / spent:.1f} GB/s" if size and spent else ""


def _fix(trace: Trace, way: str) -> str:
    if way == "DtoH":
        return (
            "Copy into a tensor pinned once (torch.empty(..., pin_memory=True)) with non_blocking=True and "
            "synchronise once before reading it; or keep the data on the device."
        )
    if trace.events.any_of(DATALOADER):
        return "Give the DataLoader pin_memory=True and copy its batches with .to(device, non_blocking=True)."
    return (
        "Put the data into pinned memory (tensor.pin_memory(), best into the same buffer every time) and copy it with "
        "non_blocking=True."
    )
