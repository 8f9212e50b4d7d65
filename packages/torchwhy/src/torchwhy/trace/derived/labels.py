"""Time in the program's own labels: what it marks with `record_function`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from torchwhy.trace.derived.compiled import compiled_of
from torchwhy.trace.derived.device_time import device_time
from torchwhy.trace.file.columns import Flags, Int32, Int64
from torchwhy.trace.meaning.annotations import PYTORCHS_OWN
from torchwhy.trace.meaning.compiler import COMPILE_ID
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.operators import AUTOGRAD_NODE
from torchwhy.trace.model.events import Events
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace

__all__ = ["Label", "labels", "own_labels"]


@dataclass(frozen=True)
class Label:
    """A label of the program, in the window.

    Attributes:
        name: as the program wrote it.
        rows: its calls that begin in the window.
        when: the part of the window in which a thread was inside it.
        self_ns: time in its calls without what they called: operators, other labels, calls of the driver.
        device_ns: durations of the device work launched in it, and meanwhile by the threads of the backward pass that
            the main thread waits for.
    """

    name: str
    rows: Int32
    when: Intervals
    self_ns: int
    device_ns: int


def own_labels(trace: Trace) -> Int32:
    """Rows of the annotations that the program made, not PyTorch, by start; `trace.derived(own_labels)`."""
    events = trace.events
    rows = events.rows(Kind.ANNOTATION)
    rows = rows[~events.are(PYTORCHS_OWN | COMPILE_ID, rows)]
    found: Int32 = rows[~np.isin(rows, trace.derived(compiled_of).stages)]
    return found


def labels(trace: Trace) -> tuple[Label, ...]:
    """Return the program's own labels, the most time first; `trace.derived(labels)` computes them once."""
    events, tree, window = trace.events, trace.calls, trace.window
    rows = trace.derived(own_labels)
    if not len(rows):
        return ()
    rows = rows[events.begin_in(rows, window.start, window.end)]
    outer = np.zeros(len(events), np.bool_)
    outer[tree.outermost_of_name(rows)] = True
    device, behind = trace.derived(device_time).total, _launched_backward(trace)
    found = []
    for name in np.unique(events.name[rows]).tolist():
        mine = rows[events.name[rows] == name]
        when = Intervals.union(events.ts[mine], np.asarray(events.end[mine])).clip(window.start, window.end)
        spent = int(tree.self_time[mine].sum())
        main = mine[outer[mine] & (events.lane[mine] == trace.main_lane)]
        work = int(device[mine[outer[mine]]].sum()) + int(behind[1][_begin_within(events, main, behind[0])].sum())
        found.append(Label(trace.name(int(mine[0])), mine, when, spent, work))
    return tuple(sorted(found, key=lambda label: -label.when.total))


def _launched_backward(trace: Trace) -> tuple[Int64, Int64]:
    """When threads of the backward pass other than the main one launched device work, and how long each took."""
    events, links = trace.events, trace.links
    lanes = np.unique(events.lane[events.of(AUTOGRAD_NODE)])
    lanes = lanes[lanes != trace.main_lane]
    chosen = (links.launch >= 0) & np.isin(events.lane[np.maximum(links.launch, 0)], lanes)
    return events.ts[links.launch[chosen]], events.dur[links.work[chosen]]


def _begin_within(events: Events, rows: Int32, times: Int64) -> Flags:
    """Which moments lie within some events."""
    found: Flags = events.times_of(rows).overlap(times, times + 1) > 0
    return found
