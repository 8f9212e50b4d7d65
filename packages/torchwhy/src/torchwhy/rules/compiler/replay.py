"""CUDA graphs and compiled code: missing, or captured over and over."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.compiler.logged import without_cuda_graph
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.compiled import compiled_of
from torchwhy.trace.derived.idle import at_stake, idle_time
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.runtime import CAPTURE_BEGIN, CAPTURE_END, GRAPH_INSTANTIATE
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import duration_ns, percent

__all__ = ["cudagraph_re_record", "no_cudagraph"]


@rule(
    "E6",
    "no-cudagraph",
    source="device idle while the host is in compiled code; 20% of the window, 5 kernels per entry",
    needs={"gpu", "idle", "order", "host"},
    frees="host",
)
def no_cudagraph(trace: Trace, *, share: float = 0.2, kernels: int = 5) -> Iterator[Finding]:
    """Compiled code launches its kernels one by one, and the GPU waits for them.

    Sees: time in which the host is in compiled regions or graphs (compilation excluded) and the device has no work,
    with five or more launches per entry and no graph launch in the whole trace.

    Costs: each launch costs the host 5 to 20 microseconds, which short kernels don't cover.

    Fix: mode="reduce-overhead" records the kernels as a CUDA graph and replays them with one launch. It wants inputs of
    fixed shapes and keeps their memory; what it can't take it skips. The compiler's log (`torchwhy profile
    --compile-log`) or TORCH_LOGS=cudagraphs says why.

    Known problems: inputs whose shapes change, or that live on the CPU, can't be replayed; the trace doesn't show it.
    """
    compiled = trace.derived(compiled_of)
    links, events = trace.links, trace.events
    if len(links.graph_launches) or not (len(compiled.regions) or len(compiled.graphs)):
        return
    graphs = events.times_of(compiled.graphs)
    inside = (compiled.running | graphs) - compiled.compiling
    lost = inside & trace.derived(idle_time)
    launches = links.launches[events.covered(links.launches, inside) > 0]
    launches = launches[trace.in_steps(launches)]
    entries = compiled.graphs if len(compiled.graphs) else compiled.regions
    calls = int(np.count_nonzero(trace.in_steps(entries)))
    if not calls or trace.window.share(lost) < share or len(launches) < kernels * calls:
        return
    yield Finding(
        title=f"The GPU has nothing to do for {percent(trace.window.share(lost))} of the time while compiled code "
        "launches",
        confidence="medium",
        stretches=lost,
        window=trace.window,
        evidence=evidence(trace, launches, times=events.covered(launches, lost)),
        cause=f"The host makes {len(launches) / calls:,.0f} launches per entry, and the device finishes most "
        "kernels before the next one is launched." + without_cuda_graph(trace),
        fix='Where input shapes are fixed: torch.compile(mode="reduce-overhead"), which replays a CUDA graph.',
    )


@rule(
    "E7",
    "cudagraph-re-record",
    source="calls that capture and instantiate graphs, after the first step that has any",
    needs={"gpu"},
    frees="host",
)
def cudagraph_re_record(trace: Trace, *, steps: int = 2) -> Iterator[Finding]:
    """CUDA graphs are captured again in steady steps.

    Sees: stream captures and graph instantiations in two or more steps after the first that has one, and the time
    from the beginning of each capture to its end.

    Costs: a capture runs the whole function on the host without the device doing its work, and instantiating costs as
    much again; the graph saves time only if it is replayed often.

    Fix: fixed shapes (pad), inputs at fixed addresses (torch._dynamo.mark_static_address), no CPU scalars and no
    mutated inputs in the captured part. TORCH_LOGS=cudagraphs,recompiles says why one was recorded again.

    Known problems: graphs captured for several shapes on purpose, one after the other, look like re-recording until all
    exist.
    """
    events = trace.events
    begin, end, made = (events.of(one) for one in (CAPTURE_BEGIN, CAPTURE_END, GRAPH_INSTANTIATE))
    rows = np.concatenate((begin, made)).astype(np.int32)
    step = trace.step_of(rows)
    where = np.unique(step[step >= 0])
    if len(where) <= steps or len(trace.steps_found) < 3:
        return
    starts, ends = _captures(trace, begin, end)
    spent = Intervals.union(
        np.concatenate((starts, events.ts[made])), np.concatenate((ends, events.end[made]))
    )  # of all steps; the time after the first is lost
    first = trace.steps_found[int(where[0])]
    lost = at_stake(trace, spent.clip(first.end, trace.window.end))
    late = rows[step > where[0]]
    yield Finding(
        title=f"CUDA graphs are captured again in {len(where) - 1} of {len(trace.steps_found)} steps, "
        f"{duration_ns(lost.total)} in all",
        confidence="high",
        stretches=lost,
        window=trace.window,
        evidence=evidence(trace, late),
        cause="A shape, an address, or the place of the graph's memory is no longer the recorded one."
        + without_cuda_graph(trace),
        fix="Pad to fixed shapes, mark inputs that stay in place (torch._dynamo.mark_static_address), keep CPU scalars "
        "out; TORCH_LOGS=cudagraphs,recompiles gives the reason.",
        linked=True,
    )


def _captures(trace: Trace, begin: Int32, end: Int32) -> tuple[np.ndarray, np.ndarray]:
    """From the beginning of each capture to the next end of one."""
    events = trace.events
    i = np.searchsorted(events.ts[end], events.ts[begin])
    there = i < len(end)
    return events.ts[begin][there], events.end[end][i[there]]
