"""Objects that are copied with all that they hold."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Evidence, Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.idle import at_stake
from torchwhy.trace.derived.stack_samples import stack_samples
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.file.columns import Flags, Int32
from torchwhy.trace.meaning.frames import COPYING_OBJECTS, line_of
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["copied_objects", "deepcopy_each_step"]


@rule("B39", "deepcopy-each-step", source="frames of copy.deepcopy", frees="host")
def deepcopy_each_step(trace: Trace, *, share: float = 0.05, steps: int = 3) -> Iterator[Finding]:
    """`copy.deepcopy` runs in the loop.

    Sees: frames of `copy.deepcopy`, recorded or in samples of the stacks (`torchwhy profile` takes them), in three
    steps or more: 5% of the window. On a GPU only the part during which the device waits.

    Costs: Python walks through every object of a model, and copies each of its tensors into new memory.

    Fix: for an average of the weights `torch.optim.swa_utils.AveragedModel`, or `torch._foreach_lerp_` over the
    parameters; to keep the best weights, copy into tensors that exist (`copy_`), once per epoch.

    Known problems: samples show the time only roughly, where fewer than some tens were taken. Recorded stacks lengthen
    the part of it that is Python.
    """
    window = trace.derived(steady_window)
    rows, samples, copies = _calls(trace), trace.derived(stack_samples), _sampled(trace)
    when = copied_objects(trace)
    if len(rows):
        seen, number = evidence(trace, rows), trace.step_of(rows)
    elif copies.any():
        chosen = np.flatnonzero(copies[samples.which])
        stack = samples.stacks[int(samples.which[chosen[0]])]
        inner = [place for place, frame in enumerate(stack) if COPYING_OBJECTS.names(frame)][-1]
        seen = (
            Evidence(
                line_of(stack[inner]),
                len(chosen),
                when.total / 1000,
                int(samples.times[chosen[0]]) / 1000,
                stack=stack[inner:],
                note="samples of Python's stack",
            ),
        )
        starts = np.array([one.start for one in trace.steps_found], np.int64)
        number = np.searchsorted(starts, samples.times[chosen], "right").astype(np.int32)
    else:
        return
    part = window.share(at_stake(trace, when))
    if part < share or len(np.unique(number)) < steps:
        return
    yield Finding(
        title=f"copy.deepcopy takes {percent(part)} of the time",
        confidence="high" if len(rows) else "medium",
        stretches=when,
        window=window,
        evidence=seen,
        cause="Python walks through every object, such as a model's modules, and copies each tensor into new memory.",
        fix="Update tensors that exist: torch._foreach_lerp_ or torch.optim.swa_utils.AveragedModel for an average of "
        "weights, copy_ for a snapshot; or copy once per epoch.",
        linked=bool(len(rows)),
    )


def copied_objects(trace: Trace) -> Intervals:
    """When `copy.deepcopy` ran, from recorded frames, or without frames from samples of the stacks."""
    window, rows = trace.derived(steady_window), _calls(trace)
    when = trace.events.times_of(rows) if len(rows) else trace.derived(stack_samples).when(_sampled(trace))
    return when.clip(window.start, window.end)


def _calls(trace: Trace) -> Int32:
    """The outermost recorded frames of `copy.deepcopy`."""
    events, window = trace.events, trace.derived(steady_window)
    rows = trace.frames.outermost_of_name(events.of(COPYING_OBJECTS)) if trace.has_stacks else np.empty(0, np.int32)
    found: Int32 = rows[trace.in_steps(rows) & events.begin_in(rows, window.start, window.end)]
    return found


def _sampled(trace: Trace) -> Flags:
    """Which sampled stacks show it."""
    stacks = trace.derived(stack_samples).stacks
    return np.array([any(COPYING_OBJECTS.names(one) for one in stack) for stack in stacks], np.bool_)
