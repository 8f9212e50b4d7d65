"""Work that is done twice, and streams that take turns."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.compute.kernels import shown
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.kernels import kernels_of
from torchwhy.trace.file.columns import Flags
from torchwhy.trace.meaning.frames import RECOMPUTING_FRAME
from torchwhy.trace.meaning.operators import AUTOGRAD_NODE, CHECKPOINT_BACKWARD
from torchwhy.trace.meaning.runtime import STREAM_WAIT
from torchwhy.trace.model.device import devices_of, streams_of
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["recompute_share", "streams_serial"]


@rule(
    "D15",
    "recompute-share",
    source="frames of torch/utils/checkpoint.py and its node in the backward pass; 10% of the kernels' time",
    needs={"gpu"},
    frees="nothing",
)
def recompute_share(trace: Trace, *, share: float = 0.1) -> Iterator[Finding]:
    """Activation checkpointing computes much of the forward pass again.

    Sees: kernels launched while `torch.utils.checkpoint` recomputes in the backward pass: inside its Python frames
    (`with_stack=True`) or in `CheckpointFunctionBackward` outside the nodes it runs, in 10% of the kernels' time or
    more.

    Costs: a second forward pass of the layers it covers, about a third more per step if it covers all. That is the
    price of the memory it saves.

    Fix: where memory allows it, checkpoint fewer layers, or only what is cheap to compute (selective checkpointing).

    Known problems: without stacks, non-reentrant checkpointing has no name in a trace.
    """
    kernels = trace.derived(kernels_of)
    launch = trace.links.maker_of(kernels.rows)
    chosen = _inside_frames(trace, launch)
    if not chosen.any():
        chosen = _inside_nodes(trace, launch)
    part = kernels.share(chosen)
    if part < share:
        return
    rows = kernels.rows[chosen]
    when = trace.when(rows)
    yield Finding(
        title=f"{percent(part)} of the compute kernels' time computes activations a second time",
        severity="info",
        confidence="high",
        stretches=when,
        window=trace.window,
        evidence=shown(trace, rows),
        cause="Activation checkpointing keeps fewer activations and computes them again in the backward pass.",
        fix="If memory is left (peak-memory is silent), checkpoint fewer layers, or choose what to keep by its cost "
        "(torch.utils.checkpoint.create_selective_checkpoint_contexts).",
        linked=True,
    )


@rule(
    "D18",
    "streams-serial",
    source="two streams whose busy times barely overlap",
    needs={"gpu", "order"},
    frees="device",
)
def streams_serial(trace: Trace, *, overlap: float = 0.05, share: float = 0.1) -> Iterator[Finding]:
    """Several streams compute, but one after another.

    Sees: a second stream (the third and further ones with it) whose kernels take at least a tenth of the first one's
    time and 10% of the window, while less than 5% of that time overlaps. Copies and communication don't count.

    Costs: the overlap that several streams are meant to give.

    Fix: look at the waits between them: `wait_stream`, `wait_event`, work on the default stream, a synchronisation
    between the launches. If each needs the other's result, one stream does as well.

    Known problems: streams of libraries, such as NCCL's, are left out by their kernels' names only.
    """
    events, kernels = trace.events, trace.derived(kernels_of)
    device, stream = devices_of(events, kernels.rows), streams_of(events, kernels.rows)
    for gpu in trace.gpus:
        own = device == gpu.device
        used = [kernels.rows[own & (stream == number)] for number in np.unique(stream[own]).tolist()]
        if len(used) < 2:
            continue
        used.sort(key=lambda rows: trace.when(rows).total, reverse=True)
        first, others = used[0], np.concatenate(used[1:])
        busy = events.times_of(first)
        aside = trace.when(others)
        both = (busy & aside).total
        if trace.window.share(aside) < share or aside.total < 0.1 * busy.total or both > overlap * aside.total:
            continue
        waits = len(events.of(STREAM_WAIT))
        yield Finding(
            title=f"{len(used)} streams of GPU {gpu.device} compute alternately: {percent(both / max(aside.total, 1))} "
            "overlap",
            most="low",
            confidence="low",
            time_us=min(aside.total, busy.total) / 1000,
            stretches=aside,
            window=trace.window,
            evidence=shown(trace, others),
            cause=f"The streams wait for each other's events ({waits} waits)."
            if waits
            else "No waits between the streams are recorded: the default stream, or launches that come too late, keep "
            "them apart.",
            fix="Check each wait_stream and wait_event between them; where one needs the other's result every time, a "
            "single stream is simpler.",
        )


def _inside_frames(trace: Trace, launch: np.ndarray[tuple[int], np.dtype[np.int32]]) -> Flags:
    """Whether launches lie within the recomputation's Python frames, on their threads."""
    events, inside = trace.events, np.zeros(len(launch), np.bool_)
    frames = events.of(RECOMPUTING_FRAME)
    at = np.maximum(launch, 0)
    for lane in np.unique(events.lane[frames]).tolist():
        own = frames[events.lane[frames] == lane]
        spans = events.times_of(own)
        if not len(spans):
            continue
        i = np.searchsorted(spans.starts, events.ts[at], "right") - 1
        within = (i >= 0) & (events.ts[at] < spans.ends[np.maximum(i, 0)])
        inside |= (launch >= 0) & (events.lane[at] == lane) & within
    return inside


def _inside_nodes(trace: Trace, launch: np.ndarray[tuple[int], np.dtype[np.int32]]) -> Flags:
    """Whether the innermost node of the backward pass around launches is the checkpoint's own."""
    events = trace.events
    own = np.zeros(len(events), np.bool_)
    own[events.of(CHECKPOINT_BACKWARD)] = True
    if not own.any():
        return np.zeros(len(launch), np.bool_)
    nodes = own.copy()
    nodes[events.of(AUTOGRAD_NODE)] = True
    nearest = trace.calls.nearest(nodes)[np.maximum(launch, 0)]
    found: Flags = (launch >= 0) & (nearest >= 0) & own[np.maximum(nearest, 0)]
    return found
