"""Waiting for the next batch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchfx.profiler.rules.evidence import evidence, severity_of
from torchfx.profiler.rules.finding import Finding
from torchfx.profiler.rules.rule import rule
from torchfx.profiler.trace.derived.idle import idle_time
from torchfx.profiler.trace.derived.launching import device_known
from torchfx.profiler.trace.file.columns import Int32, Int64
from torchfx.profiler.trace.meaning.annotations import NEXT_BATCH
from torchfx.profiler.trace.model.trace import Trace
from torchfx.profiler.wording import percent

__all__ = ["dataloader_single_process", "dataloader_wait"]

IN_PROCESS = r"enumerate\(DataLoader\)#_SingleProcessDataLoaderIter"


@rule(
    "B9",
    "dataloader-wait",
    source="torch.profiler's `enumerate(DataLoader)#` annotation; 5% as in the TensorBoard plugin",
)
def dataloader_wait(trace: Trace, *, share: float = 0.05) -> Iterator[Finding]:
    """The program waits for its next batch.

    Sees: the time in `enumerate(DataLoader)#...__next__`, or in the program's own annotation around getting a batch
    ("load_data", "wait_for_batch", Lightning's "train_dataloader_next"), during which no device has work, as a share of
    the window. On a machine without GPU all of that time counts.

    Costs: while the loop waits for data, nothing is computed. Loading that overlaps with the device's work is free and
    isn't counted.

    Fix: load in worker processes (`num_workers`), keep them alive (`persistent_workers`), let them run ahead
    (`prefetch_factor`), pin the batches; or make a sample cheaper: decode once, cache, augment on the device.
    """
    rows, waited = _waits(trace)
    total = min(int(waited.sum()) / 1000, trace.window.us)
    window = trace.window
    if not len(rows) or total < share * window.us:
        return
    single = trace.events.names_matching(IN_PROCESS)[trace.events.name[rows]]
    if single.any():
        cause = "The batches are made in the program's own process (num_workers=0), so the loop stands still meanwhile."
        fix = (
            "Give the DataLoader num_workers=4 or so and persistent_workers=True; then measure again. "
            "Worker processes take a second to start and hold copies of what the dataset holds."
        )
    elif not trace.events.names_matching(r"enumerate\(")[trace.events.name[rows]].any():
        cause = "An annotation of the program's own says so; what is inside of it isn't recorded."
        fix = "Get the next batch in another process or thread while a step runs, as DataLoader(num_workers=4) does."
    else:
        cause = "The worker processes don't keep up: a batch takes longer to make than to use."
        fix = (
            "More workers (up to the processor's cores), a larger prefetch_factor, or cheaper samples: "
            "decode once and cache, smaller files, augmentation on the device."
        )
    idle = " while no device had work" if trace.has_gpu else ""
    yield Finding(
        title=f"{percent(total / window.us)} of the time goes to waiting for the next batch{idle}",
        severity=severity_of(total / window.us),
        confidence="high",
        time_us=total,
        window=window,
        evidence=evidence(trace, rows, times=waited),
        cause=cause,
        fix=fix,
        linked=bool(single.any()),
    )


@rule(
    "B10",
    "dataloader-single-process",
    source="torch.profiler's pattern matcher, synchronised DataLoader",
)
def dataloader_single_process(trace: Trace, *, share: float = 0.005) -> Iterator[Finding]:
    """The DataLoader works in the program's own process.

    Sees: `_SingleProcessDataLoaderIter` in the name of the annotation, with a measurable wait that is still too short
    for dataloader-wait.

    Costs: little now; it grows with the dataset's cost per sample, since nothing is loaded while a step runs.

    Fix: `num_workers=4` or so, if a sample costs more than a fraction of a millisecond.
    """
    rows, waited = _waits(trace)
    single = trace.events.names_matching(IN_PROCESS)[trace.events.name[rows]]
    rows, waited = rows[single], waited[single]
    total = min(int(waited.sum()) / 1000, trace.window.us)
    if not share <= (total / trace.window.us if trace.window.us else 0) < dataloader_wait.thresholds["share"]:
        return
    yield Finding(
        title=f"The DataLoader has no workers; its {percent(total / trace.window.us)} of the time overlaps with "
        "nothing",
        severity="info",
        confidence="high",
        time_us=total,
        window=trace.window,
        evidence=evidence(trace, rows, times=waited),
        cause="num_workers=0: each batch is made between two steps, in the loop's own process.",
        fix="If samples become more costly, give the DataLoader num_workers=4 and persistent_workers=True.",
        linked=True,
    )


def _waits(trace: Trace) -> tuple[Int32, Int64]:
    """The calls for the next batch in the window, and for how long nothing else went on during each."""
    events, window = trace.events, trace.window
    rows = events.of(NEXT_BATCH)
    rows = rows[(events.ts[rows] >= window.start) & (events.ts[rows] < window.end)]
    rows = rows[~np.isin(trace.calls.parent[rows], rows)]  # an annotation around PyTorch's own
    if not trace.derived(device_known):  # nor is it known whether it worked meanwhile
        return rows[:0], np.empty(0, np.int64)
    start, end = events.ts[rows], np.minimum(events.end[rows], window.end)
    waited = trace.derived(idle_time).overlap(start, end) if trace.has_gpu else np.asarray(end - start)
    return rows, waited
