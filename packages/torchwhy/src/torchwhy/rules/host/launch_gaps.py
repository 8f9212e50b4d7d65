"""Gaps of the device whose next launch came late, and what to advise against them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from torchwhy.trace.derived.gaps import Cause, Gaps, idle_gaps
from torchwhy.trace.derived.host_activity import otherwise_engaged, outer_operators
from torchwhy.trace.derived.launches import kernel_launches, queue_at_launch
from torchwhy.trace.derived.steady_state import steady_device_window, steady_window
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.annotations import OPTIMIZER_STEP
from torchwhy.trace.meaning.compiler import REGION
from torchwhy.trace.meaning.operators import FOREACH_OR_FUSED
from torchwhy.trace.model.intervals import Intervals, Window
from torchwhy.trace.model.trace import Trace

__all__ = ["Launching", "callers", "fewer_launches", "launching", "time_of"]

LONGEST_NS = 2_000_000
"""A dispatched operator takes 5 to 200 us of the host's time, a slow one 1 ms: longer gaps have another reason."""


@dataclass(frozen=True)
class Launching:
    """How the device's idle time comes from launches that follow each other too slowly.

    Attributes:
        late: the gaps whose next launch came too late, each short enough to be the price of a call rather than of
            something else the host did; without compilation, batches, captures of graphs, and a cold first step.
        gaps: all gaps.
        chosen: which of `gaps` those are.
        window: the steps without a cold first one, or from first to last work where there are no steps.
        busy_ns: the device's work in the window.
        queue: the median number of launches already waiting when one was issued.
    """

    late: Intervals
    gaps: Gaps
    chosen: np.ndarray[tuple[int], np.dtype[np.bool_]]
    window: Window
    busy_ns: int
    queue: float

    @property
    def late_gaps(self) -> int:
        """How many gaps `late` consists of: one may be interrupted by something else the host did."""
        return int(np.count_nonzero(self.chosen))


def launching(trace: Trace) -> Launching:
    """Separate what launches cost from everything else that leaves the device idle."""
    gaps = trace.derived(idle_gaps)
    elsewhere = trace.derived(otherwise_engaged).overlap(gaps.starts, gaps.ends)
    chosen = gaps.of(Cause.HOST, Cause.CALL) & (gaps.lengths <= LONGEST_NS) & (elsewhere * 2 < gaps.lengths)
    window = trace.derived(steady_device_window)
    chosen &= (gaps.starts >= window.start) & (gaps.ends <= window.end)
    late = Intervals(gaps.starts[chosen], gaps.ends[chosen]) - trace.derived(otherwise_engaged)
    busy = trace.gpu.busy.clip(window.start, window.end).total
    queue = trace.derived(queue_at_launch)
    return Launching(
        late,
        gaps,
        chosen,
        window,
        busy,
        float(np.median(queue)) if len(queue) else 0.0,
    )


def callers(trace: Trace, late: Intervals) -> tuple[Int32, np.ndarray]:
    """Outermost operators, and how long each kept the host busy while the device waited."""
    rows = trace.derived(outer_operators)
    if not len(rows):
        rows = trace.derived(kernel_launches)
    times = trace.events.covered(rows, late)
    return rows[times > 0], times[times > 0]


def time_of(trace: Trace, window: Window) -> str:
    """Return the words for a window of the device: "the time", unless the breakdown of the time has another one."""
    whole = trace.derived(steady_window)
    same = (window.start, window.end) == (whole.start, whole.end)
    return "the time" if same else f"the time from {window.name}"


def fewer_launches(trace: Trace, waited: Intervals) -> str:
    """Advice that fits what the program does already, and when the device waited."""
    events = trace.events
    compiled = 2 * (waited & events.times_of(events.of(REGION))).total > waited.total
    advice = ["Give each call more work (larger batches)"]
    if len(trace.links.graph_launches):
        advice.append("put what is still launched one by one into the CUDA graph as well")
    elif compiled:
        advice.append(
            'torch.compile(mode="reduce-overhead") replays the launches of the compiled parts as a CUDA graph'
        )
    else:
        advice.append('torch.compile(model, mode="reduce-overhead") fuses operators and replays their launches')
    updates = events.of(OPTIMIZER_STEP)
    if events.covered(updates, waited).any() and not events.any_of(FOREACH_OR_FUSED):
        advice.append("use the optimizer's foreach=True or fused=True")
    return "; ".join(advice) + "."
