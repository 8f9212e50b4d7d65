"""Forward passes that are computed again in the backward pass, on a processor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Evidence, Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.stack_samples import stack_samples
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.meaning.arithmetic import CONVOLUTION, LINEAR
from torchwhy.trace.meaning.frames import BACKWARD_CALL, CHECKPOINT_SAMPLED, RECOMPUTING_FRAME, code_of, line_of
from torchwhy.trace.meaning.operators import AUTOGRAD_NODE
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["recomputed_on_cpu"]


@rule("D34", "recomputed-forward", source="layers called within nodes of the backward pass", frees="host")
def recomputed_on_cpu(trace: Trace, *, share: float = 0.1) -> Iterator[Finding]:
    """Activation checkpointing computes the forward pass twice.

    Sees: on a program without GPU, layers (`aten::linear`, `conv2d`) that are called within the nodes of the backward
    pass, and frames of `torch.utils.checkpoint`, recorded or in samples of the stacks. From the first such layer of a
    node to the last it takes 10% of the window or more.

    Costs: the forward pass of what is checkpointed, once more in each step.

    Fix: no checkpointing where memory suffices, or for fewer blocks: those whose activations are large and cheap.

    Known problems: how much memory the activations need isn't recorded, so the finding is medium at most.
    """
    if trace.has_gpu:
        return
    events, window = trace.events, trace.derived(steady_window)
    wanted = np.zeros(len(events), np.bool_)
    wanted[events.of(AUTOGRAD_NODE)] = True
    layers = events.of(LINEAR | CONVOLUTION)
    node = trace.calls.nearest(wanted)[layers]
    layers, node = layers[node >= 0], node[node >= 0]
    layers, node = layers[trace.in_steps(layers)], node[trace.in_steps(layers)]
    samples = trace.derived(stack_samples)
    checkpointed = any(CHECKPOINT_SAMPLED.names(frame) for stack in samples.stacks for frame in stack)
    if not len(layers) or not (checkpointed or len(events.of(RECOMPUTING_FRAME))):
        return
    nodes = np.unique(node)
    first = np.array([events.ts[layers[node == one]].min() for one in nodes.tolist()], np.int64)
    last = np.array([events.end[layers[node == one]].max() for one in nodes.tolist()], np.int64)
    when = Intervals.union(np.maximum(events.ts[nodes], first), last).clip(window.start, window.end)
    part = window.share(when)
    if part < share:
        return
    yield Finding(
        title=f"Checkpointing computes parts of the forward pass again: {percent(part)} of the time",
        most="medium",
        confidence="medium",
        stretches=when,
        window=window,
        evidence=(*evidence(trace, layers), *_calls(trace)),
        cause="torch.utils.checkpoint keeps no activations, and computes them again in the backward pass.",
        fix="Where memory suffices, call the blocks without torch.utils.checkpoint, or checkpoint fewer of them.",
        linked=True,
    )


def _calls(trace: Trace) -> tuple[Evidence, ...]:
    """The line of the program that calls for a checkpoint, from samples of the stacks."""
    samples = trace.derived(stack_samples)
    found: Counter[tuple[str, ...]] = Counter()
    for i in samples.which.tolist():
        stack = samples.stacks[i]
        asked = [place for place, frame in enumerate(stack) if CHECKPOINT_SAMPLED.names(frame)]
        outside = stack[asked[-1] + 1 :] if asked else ()
        caller = next((place for place, frame in enumerate(outside) if code_of(frame) == "program"), -1)
        if caller >= 0 and not any(BACKWARD_CALL.names(frame) for frame in outside[:caller]):
            found[outside[caller:]] += 1
    if not found:
        return ()
    stack, count = found.most_common(1)[0]
    return (Evidence(line_of(stack[0]), count, stack=stack, note="samples of Python's stack"),)
