"""Time in the program's own labels: what it marks with `record_function`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from torchwhy.trace.derived.compiled import compiled_of
from torchwhy.trace.derived.device_time import device_time
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.annotations import PYTORCHS_OWN
from torchwhy.trace.meaning.compiler import COMPILE_ID
from torchwhy.trace.meaning.kinds import Kind
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
        device_ns: durations of the device work launched in it.
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
    device = trace.derived(device_time).total
    found = []
    for name in np.unique(events.name[rows]).tolist():
        mine = rows[events.name[rows] == name]
        when = Intervals.union(events.ts[mine], np.asarray(events.end[mine])).clip(window.start, window.end)
        spent = int(tree.self_time[mine].sum())
        found.append(Label(trace.name(int(mine[0])), mine, when, spent, int(device[mine[outer[mine]]].sum())))
    return tuple(sorted(found, key=lambda label: -label.when.total))
