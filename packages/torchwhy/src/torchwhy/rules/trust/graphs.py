"""CUDA graphs: their capture, which launches nothing, and their replay, whose work isn't always recorded."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Evidence, Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.gaps import Cause, idle_gaps
from torchwhy.trace.derived.launches import graph_captures, kernel_launches
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.runtime import GRAPH_INSTANTIATE
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import often, percent

__all__ = ["graph_capture", "graph_replay_unrecorded"]


@rule(
    "A5",
    "graph-replay-unrecorded",
    source="PyTorch's torch.profiler._utils._init_for_cuda_graphs; CUDA driver 525.85.12 or CUDA 12",
    mutes=("idle",),
    frees="nothing",
)
def graph_replay_unrecorded(trace: Trace, *, share: float = 0.05) -> Iterator[Finding]:
    """CUDA graphs were replayed, but not all they did was recorded.

    Sees: calls that launch a graph and left nothing in the trace, neither work nor any other node; or, with some of it
    recorded, more than 5% of the window in which the next work is a queued graph's and the device nevertheless shows
    nothing.

    Costs: what looks idle may have been busy, so rules about idle time are muted.

    Fix: a newer driver and PyTorch, which trace each node of a graph; before that, call
    `torch.profiler._utils._init_for_cuda_graphs()` before the graph is captured; or profile without graphs. Where the
    nodes are recorded, `torchwhy explain TRACE --capture PATH` names their operators by a trace of the capture.

    Known problems: a graph that waits for another stream looks like one whose nodes are missing.
    """
    graphs = trace.links.graph_launches
    if not len(graphs):
        return
    empty = trace.links.unrecorded_graphs
    hidden = _hidden(trace)
    part = trace.window.share(hidden)
    fix = (
        "Do not read idle time here. Call torch.profiler._utils._init_for_cuda_graphs() before capturing, or use a "
        "newer driver (525.85.12 or later) and PyTorch; for a reading of the kernels, profile once without CUDA graphs."
    )
    if len(empty):
        title = f"{len(empty):,} of {len(graphs):,} graph launches have no work in the trace"
        rows: Int32 = empty
        cause = "The profiler did not trace the nodes of replayed CUDA graphs."
    elif part > share:
        title = (
            f"{percent(part)} of the window looks idle although a graph was queued: some of its nodes are probably "
            "missing"
        )
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
        stretches=hidden,
        window=trace.window,
        evidence=evidence(trace, rows, limit=3),
        cause=cause,
        fix=fix,
        linked=bool(len(empty)),
    )


def _hidden(trace: Trace) -> Intervals:
    """Idle time before work that a graph launched, after the launch had returned."""
    gaps = trace.derived(idle_gaps)
    by_graph = np.isin(gaps.launch, trace.links.graph_launches)
    chosen = by_graph & gaps.of(Cause.DEVICE)
    return Intervals(gaps.starts[chosen], gaps.ends[chosen])


@rule(
    "A18",
    "graph-capture",
    source="launches without kernels between the calls that begin and end a capture",
    frees="nothing",
)
def graph_capture(trace: Trace, *, share: float = 0.01) -> Iterator[Finding]:
    """A CUDA graph was captured while recording.

    Sees: `cudaStreamBeginCapture` to `cudaStreamEndCapture`, `capture_begin` to `capture_end` among the Python frames,
    functions such as `capture_model` whose launches left no work, and `cudaGraphInstantiate`: 1% of the window or more.

    Costs: nothing in a program that runs on: a graph is captured once and replayed often. Launches in a capture are
    recorded into the graph and run nothing, so they have no kernels, and the device is idle. Rules about overhead,
    waits and launches leave that time out.

    Fix: to judge the program, record after the capture (`schedule(wait=..., warmup=...)`). To shorten the start,
    capture fewer batch sizes. A recording of the capture is of use: with `--capture` it names the operators, shapes and
    modules of the replayed kernels in a trace of serving.

    Known problems: where neither the runtime's calls nor Python stacks were recorded, a capture isn't recognised; its
    launches then count as lost (dropped-kernels).
    """
    window = trace.window
    when = trace.derived(graph_captures).clip(window.start, window.end)
    part = window.share(when)
    if not len(when) or part < share:
        return
    events = trace.events
    launches = trace.links.launches
    captured = launches[~np.isin(launches, trace.derived(kernel_launches))]
    rows = np.concatenate((captured, events.of(GRAPH_INSTANTIATE))).astype(np.int32)
    again = f", {often(len(when))}" if len(when) > 1 else ""
    yield Finding(
        title=f"{percent(part)} of the window is the capture of CUDA graphs{again}: {len(captured):,} launches are "
        "recorded into the graph, and run nothing",
        severity="info",
        confidence="high",
        stretches=when,
        window=window,
        evidence=evidence(trace, rows)
        or (Evidence("capture", len(when), when.total / 1000, when.longest_start / 1000),),
        cause="During a capture launches are recorded into the graph and run nothing: they have no kernels, and the "
        "device is idle.",
        fix="Record after the capture to judge the program: schedule(wait=..., warmup=...).",
        linked=True,
    )
