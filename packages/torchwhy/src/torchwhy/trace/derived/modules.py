"""Time per `nn.Module`, from the Python frames of a trace that has them, or per annotation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from torchwhy.trace.derived.autograd import autograd
from torchwhy.trace.derived.device_time import device_time
from torchwhy.trace.derived.labels import own_labels
from torchwhy.trace.derived.ownership import own_line
from torchwhy.trace.file.columns import Flags, Int32, Int64
from torchwhy.trace.meaning.annotations import BACKWARD_LABEL
from torchwhy.trace.meaning.frames import MODULE, MODULE_PREFIX
from torchwhy.trace.meaning.kinds import Kind

if TYPE_CHECKING:
    from torchwhy.trace.model.trace import Trace
    from torchwhy.trace.model.tree import Tree

__all__ = ["Module", "modules"]


@dataclass(frozen=True)
class Module:
    """One module (or annotation) at one place in the program.

    Attributes:
        name: such as "Linear_3": the class, and which of its instances.
        path: the modules around it and itself, joined by ".".
        depth: how many modules are around it.
        line: the program's own line that calls it first, such as "model.py(34): forward"; "" where unknown.
        rows: its calls; those of a captured graph once, however often it was replayed.
        calls: how many, each replay of a graph that has one counted.
        host_ns: time in its calls.
        host_self_ns: the same without the modules it calls.
        device_ns: of the device work launched in its calls.
        device_self_ns: the same without the modules it calls.
        backward_host_ns, backward_device_ns: of the backward pass of its operators, those of the modules it calls
            included: its time on the host, and that of the device work it launched.
    """

    name: str
    path: str
    depth: int
    line: str
    rows: Int32
    calls: int
    host_ns: int
    host_self_ns: int
    device_ns: int
    device_self_ns: int
    backward_host_ns: int
    backward_device_ns: int


def modules(trace: Trace) -> tuple[Module, ...]:
    """Return the modules in order of their first call; `trace.derived(modules)` computes them once."""
    events, tree = trace.events, trace.frames
    wanted = np.zeros(len(events), np.bool_)
    wanted[events.of(MODULE)] = True
    borrowed = events.borrowed(Kind.PYTHON)
    wanted[borrowed[events.are(MODULE, borrowed)]] = True
    if not wanted.any():  # what a label of the backward pass holds is charged to the labels that made it
        own = trace.derived(own_labels)
        wanted[own[~events.are(BACKWARD_LABEL, own)]] = True
    rows = tree.nested[wanted[tree.nested]]
    if not len(rows):
        return ()
    around = _around(tree, wanted, rows)
    path, names, parents = _paths(events.name[rows], around)
    placed = _made_in(trace, wanted)
    backward_host = tree.sums(_backward(trace, events.dur))[rows]
    backward_device = tree.sums(_backward(trace, trace.derived(device_time).total))[rows]
    total = tree.sums(placed)[rows]
    host = events.dur[rows]
    self_host, self_device = host.copy(), total.copy()
    inner = np.flatnonzero(around >= 0)
    np.subtract.at(self_host, around[inner], host[inner])
    np.subtract.at(self_device, around[inner], total[inner])
    full: list[str] = []
    depth: list[int] = []
    for name, parent in zip(names, parents, strict=True):
        text = events.texts[name].removeprefix(MODULE_PREFIX)
        full.append(f"{full[parent]}.{text}" if parent >= 0 else text)
        depth.append(depth[parent] + 1 if parent >= 0 else 0)
    order = np.argsort(path, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(path[order])) + 1)
    found = [
        Module(
            events.texts[names[i]].removeprefix(MODULE_PREFIX),
            full[i],
            depth[i],
            own_line(trace, int(rows[group[0]])),
            rows[group],
            int(events.times(rows[group]).sum()),
            int(host[group].sum()),
            int(np.maximum(self_host[group], 0).sum()),
            int(total[group].sum()),
            int(self_device[group].sum()),
            int(backward_host[group].sum()),
            int(backward_device[group].sum()),
        )
        for i, group in enumerate(groups)
    ]
    return tuple(sorted(found, key=lambda module: int(events.ts[module.rows].min())))


def _around(tree: Tree, wanted: npt.NDArray[np.bool_], rows: Int32) -> Int32:
    """For each row the position (among the rows) of the module around it, or -1."""
    position = np.full(len(wanted) + 1, -1, np.int32)
    position[rows] = np.arange(len(rows), dtype=np.int32)
    nearest = np.append(tree.nearest(wanted), np.int32(-1))
    found: Int32 = position[nearest[tree.parent[rows]]]
    return found


def _paths(name: Int32, around: Int32) -> tuple[Int32, list[int], list[int]]:
    """Number the different chains of names: of each call its number, of each number its name and what is around it."""
    path = np.full(len(name), -1, np.int32)
    numbers: dict[tuple[int, int], int] = {}
    for i, (own, above) in enumerate(zip(name.tolist(), around.tolist(), strict=True)):  # parents come first
        parent = int(path[above]) if above >= 0 else -1
        path[i] = numbers.setdefault((parent, own), len(numbers))
    return path, [own for _, own in numbers], [parent for parent, _ in numbers]


def _made_in(trace: Trace, modules: Flags) -> Int64:
    """Device time at the call that made it; of a graph captured outside of all modules at the launch of the graph."""
    links, inside = trace.links, trace.frames.nearest(modules) >= 0
    placed = trace.derived(device_time).placed
    if trace.captured is None:
        return placed
    at = np.flatnonzero((links.maker != links.launch) & ~inside[links.maker])
    moved = trace.events.dur[links.work[at]]
    for rows, sign in ((links.maker[at], -1), (links.launch[at], 1)):
        placed = placed + sign * np.bincount(rows, weights=moved, minlength=len(placed)).astype(np.int64)
    return placed


def _backward(trace: Trace, spent: Int64) -> Int64:
    """The time of each node of the backward pass, at the operator of the forward pass that made it."""
    pairs = trace.derived(autograd)
    found: Int64 = np.bincount(pairs.forward, weights=spent[pairs.backward], minlength=len(spent)).astype(np.int64)
    return found
