"""Memory taken from and given back to the driver in steady state."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.meaning.runtime import ALLOCATOR_CALL, DEVICE_FREE
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["allocator_thrash"]


@rule(
    "B18", "allocator-thrash", source="PyTorch's caching allocator, which calls the driver only to grow", frees="host"
)
def allocator_thrash(trace: Trace, *, share: float = 0.01) -> Iterator[Finding]:
    """Memory is taken from the driver, or given back, in every step.

    Sees: cudaMalloc, cudaFree, their hip names, or the driver's mapping calls, in at least half of the steps after the
    first, taking 1% of their time or more.

    Costs: the call itself, up to milliseconds; cudaFree also waits until the device has finished everything.

    Fix: no `torch.cuda.empty_cache()` in the loop; unset PYTORCH_NO_CUDA_MEMORY_CACHING; against growing or changing
    shapes `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` or padding to a few sizes.

    Known problems: libraries that allocate for themselves, past PyTorch's allocator, look the same; the operator around
    the call shows which it was.
    """
    events, steps = trace.events, trace.steps_found
    rows = events.of(ALLOCATOR_CALL)
    if len(steps) < 2 or not len(rows):
        return
    which = trace.step_of(rows)
    rows = rows[which >= 1]
    steady = steps[1:]
    touched = len(np.unique(which[which >= 1]))
    length = sum(step.duration for step in steady)
    spent = events.times_of(rows).total
    if touched * 2 < len(steady) or touched < min(2, len(steady)) or not length or spent < share * length:
        return
    if events.are(DEVICE_FREE, rows).any():
        cause = (
            "Memory goes back to the driver and is allocated again: empty_cache(), no caching, or too little memory."
        )
        fix = (
            "Take torch.cuda.empty_cache() out of the loop and unset PYTORCH_NO_CUDA_MEMORY_CACHING; else "
            "a smaller batch or PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."
        )
    else:
        cause = "The memory a step needs still grows: its shapes change, or it keeps what earlier steps made."
        fix = (
            "Pad inputs to a few sizes, keep no results that need gradients, or set "
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."
        )
    first = events.of(ALLOCATOR_CALL)
    first = first[trace.step_of(first) == 0]
    usual = len(first) * len(steady) <= 1.5 * len(rows)  # else most of them are those of a first step
    yield Finding(
        title=f"Getting memory and freeing it takes {percent(spent / length)} of a step: "
        f"{len(rows) / len(steady):,.1f} calls per step",
        confidence="high",
        stretches=trace.when(np.concatenate((first, rows)) if usual else rows),
        window=trace.window,
        evidence=evidence(trace, rows),
        cause=cause,
        fix=fix,
    )
