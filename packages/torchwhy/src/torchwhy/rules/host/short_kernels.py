"""Kernels shorter than what it takes to launch them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding, severity_of
from torchwhy.rules.evidence import evidence
from torchwhy.rules.host.bound import overhead_bound
from torchwhy.rules.host.launch_gaps import fewer_launches, launching
from torchwhy.rules.rule import rule
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import duration_ns

__all__ = ["short_kernels"]


@rule(
    "B3",
    "short-kernels",
    source="10 us as in TraceLens; kernels shorter than their launch as in Holistic Trace Analysis",
    needs=("gpu", "idle", "order"),
    frees="host",
)
def short_kernels(trace: Trace, *, share: float = 0.5, short_us: float = 10.0) -> Iterator[Finding]:
    """Most kernels are shorter than what it takes to launch them.

    Sees: half of the kernels or more take less than 10 us or less than their launching call, while the device waits for
    launches (overhead-bound).

    Costs: the gap before each such kernel, which is longer than the kernel.

    Fix: fuse or batch what these kernels do: `torch.compile` for chains of elementwise operators, `foreach` or `fused`
    for optimizers, one batched call instead of a loop; or replay them as a CUDA graph.

    Known problems: kernels that nothing launched one by one (nodes of a graph) count as short too, where the rest of
    the program is overhead-bound.
    """
    if not list(overhead_bound.check(trace)):
        return
    found = trace.derived(launching)
    events, links = trace.events, trace.links
    kernels = events.kind[links.work] == Kind.KERNEL
    work, launch = links.work[kernels], links.launch[kernels]
    call = np.where(launch >= 0, events.dur[launch], 0)
    small = (events.dur[work] < short_us * 1000) | (events.dur[work] < call)
    if np.count_nonzero(small) < share * len(work):
        return
    waits = found.chosen & np.isin(found.gaps.work, work[small])
    total, window = int(found.gaps.lengths[waits].sum()), found.window
    few = np.count_nonzero(small)
    yield Finding(
        title=f"{few:,} of {len(work):,} kernels take under {short_us:.0f} us or less than their launch",
        severity=severity_of(total / max(window.end - window.start, 1)),
        confidence="high",
        time_us=total / 1000,
        stretches=Intervals(found.gaps.starts[waits], found.gaps.ends[waits]),
        window=window,
        evidence=evidence(trace, work[small], note="short kernels"),
        cause=f"The device waits {duration_ns(total)} before kernels that take "
        f"{duration_ns(events.dur[work[small]].sum())}.",
        fix=fewer_launches(trace),
        linked=True,
    )
