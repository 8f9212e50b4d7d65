"""Replayed CUDA graphs, whose work the profiler doesn't always see."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchfx.profiler.rules.evidence import evidence
from torchfx.profiler.rules.finding import Finding
from torchfx.profiler.rules.rule import rule
from torchfx.profiler.trace.derived.gaps import Cause, idle_gaps
from torchfx.profiler.trace.file.columns import Int32
from torchfx.profiler.trace.model.trace import Trace
from torchfx.profiler.wording import percent

__all__ = ["graph_replay_unrecorded"]


@rule(
    "A5",
    "graph-replay-unrecorded",
    source="PyTorch's torch.profiler._utils._init_for_cuda_graphs; CUDA driver 525.85.12 or CUDA 12",
    mutes=("idle",),
)
def graph_replay_unrecorded(trace: Trace, *, share: float = 0.05) -> Iterator[Finding]:
    """CUDA graphs were replayed, but not all they did was recorded.

    Sees: calls that launch a graph and left nothing in the trace, neither work nor any other node; or, with some of it
    recorded, more than 5% of the window in which the next work is a queued graph's and the device nevertheless shows
    nothing.

    Costs: what looks idle may have been busy, so rules that speak of idle time are muted.

    Fix: a newer driver and PyTorch, which trace each node of a graph; before that, call
    `torch.profiler._utils._init_for_cuda_graphs()` before the graph is captured; or profile without graphs.
    """
    graphs = trace.links.graph_launches
    if not len(graphs):
        return
    empty = trace.links.unrecorded_graphs
    hidden = _hidden(trace) if trace.has_gpu else 0
    fix = (
        "Do not read idle time here. Call torch.profiler._utils._init_for_cuda_graphs() before capturing, or use a "
        "newer driver (525.85.12 or later) and PyTorch; for a reading of the kernels, profile once without CUDA graphs."
    )
    if len(empty):
        title = f"{len(empty):,} of {len(graphs):,} graph launches have no work in the trace"
        rows: Int32 = empty
        cause = "The profiler did not trace the nodes of replayed CUDA graphs."
    elif hidden > share * (trace.window.end - trace.window.start):
        part = hidden / (trace.window.end - trace.window.start)
        title = f"{percent(part)} of the window looks idle although a graph was queued: not all its nodes are recorded"
        rows = graphs
        cause = (
            "The launch was issued long before and nothing else ran: graph nodes are missing from the trace, or the "
            "graph waited for something the trace doesn't show."
        )
    else:
        return
    yield Finding(
        title=title,
        severity="high",
        confidence="high" if len(empty) else "medium",
        time_us=hidden / 1000,
        window=trace.window,
        evidence=evidence(trace, rows, limit=3),
        cause=cause,
        fix=fix,
        linked=bool(len(empty)),
    )


def _hidden(trace: Trace) -> int:
    """Idle time before work that a graph launched and that had been queued all along, nanoseconds."""
    gaps = trace.derived(idle_gaps)
    by_graph = np.isin(gaps.launch, trace.links.graph_launches)
    return int(gaps.lengths[by_graph & gaps.of(Cause.DEVICE)].sum())
