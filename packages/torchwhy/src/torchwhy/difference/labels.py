"""Times of a program's own labels and modules on both sides: they stay when operators are fused or rewritten."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from torchwhy.difference.costs import Side
from torchwhy.trace.derived.labels import labels
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.frames import MODULE, PYTORCHS_FORWARD
from torchwhy.trace.meaning.programs import stable_name
from torchwhy.trace.model.trace import Trace

__all__ = ["LabelTimes", "labels_between", "labels_of"]


@dataclass(frozen=True)
class LabelTimes:
    """One label on both sides, per step, with all that is called inside.

    Attributes:
        name: an annotation, or the class of modules as "nn.Module: Linear".
        calls: how often, on A and on B; of calls inside each other the outermost counts.
        host_us, device_us: time on the host, and of the device's work launched inside.
    """

    name: str
    calls: tuple[float, float]
    host_us: tuple[float, float]
    device_us: tuple[float, float]


def labels_of(trace: Trace) -> dict[str, Int32]:
    """The rows of each label: the program's own annotations, the most time first, and its own classes of modules.

    Most programs have modules of torch.nn: those show nothing of one.
    """
    events, modules = trace.events, trace.events.of(MODULE)
    found: dict[str, list[Int32]] = {}
    for label in trace.derived(labels):
        found.setdefault(stable_name(label.name), []).append(label.rows)
    called = np.zeros(len(events), np.bool_)
    called[modules] = True
    pytorchs = np.unique(trace.frames.nearest(called)[events.of(PYTORCHS_FORWARD)])
    modules = modules[~np.isin(events.name[modules], events.name[pytorchs[pytorchs >= 0]])]
    names = events.name[modules]
    for i in dict.fromkeys(names.tolist()):
        found.setdefault(_class_of(events.texts[i]), []).append(modules[names == i])
    return {name: np.concatenate(parts) for name, parts in found.items() if name}


def labels_between(a: Side, b: Side, names: Sequence[str]) -> tuple[LabelTimes, ...]:
    """Compare labels that both sides have, those that change most first."""
    sides = [(_times(side, labels_of(side.trace), names)) for side in (a, b)]
    found = [
        LabelTimes(name, *((before[i], after[i]) for i in range(3)))
        for name, before, after in zip(names, *sides, strict=True)
    ]
    return tuple(sorted(found, key=lambda label: -max(abs(y - x) for x, y in (label.host_us, label.device_us))))


def _times(side: Side, rows_of: dict[str, Int32], names: Sequence[str]) -> list[tuple[float, float, float]]:
    """Calls, host's and device's time per step of each label."""
    trace, rounds, found = side.trace, side.rounds, []
    events, tree, launch = trace.events, trace.frames, trace.links.launch
    inside = (launch >= 0) & (rounds.of(events.ts[np.maximum(launch, 0)]) >= 0) if len(launch) else launch >= 0
    for name in names:
        rows = rows_of[name][rounds.of(events.ts[rows_of[name]]) >= 0]
        wanted = np.zeros(len(events), np.bool_)
        wanted[rows] = True
        around = tree.nearest(wanted)
        above = tree.parent[rows]
        outer = rows[(above < 0) | (around[above] < 0)]
        launched = trace.links.work[inside][around[launch[inside]] >= 0]
        sums = len(outer), float(events.dur[outer].sum()) / 1000, float(events.dur[launched].sum()) / 1000
        found.append(tuple(value / len(rounds) for value in sums))
    return found  # type: ignore[return-value]


def _class_of(module: str) -> str:
    """ "nn.Module: Linear" of "nn.Module: Linear_3"."""
    name, _, number = module.rpartition("_")
    return name if number.isdigit() else module
