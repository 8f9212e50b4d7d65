"""The call trees of both sides laid over each other, to see where a difference of time arises."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from torchfx.profiler.difference.costs import Side, canonical_ids
from torchfx.profiler.trace.file.columns import Int32, Int64
from torchfx.profiler.trace.model.kinds import Kind

__all__ = ["OTHER_THREADS", "Node", "Origin", "aligned_tree", "main_path", "origins"]

OTHER_THREADS: Final = "(other threads)"
"""Stands between the step and what other threads, such as autograd's, did meanwhile."""

MOST: Final = 0.6
"""The part of the whole change that a call must have to explain most of it."""

MODULE: Final = "nn.Module: "


@dataclass
class Node:
    """A path of calls from the step down, per step, on A and on B.

    Attributes:
        name: of the innermost call.
        calls: how often.
        us: time, with what is called inside.
        children: the calls directly inside, by name.
    """

    name: str
    calls: list[float] = field(default_factory=lambda: [0.0, 0.0])
    us: list[float] = field(default_factory=lambda: [0.0, 0.0])
    children: dict[str, Node] = field(default_factory=dict)

    @property
    def change_us(self) -> float:
        """B's time less A's."""
        return self.us[1] - self.us[0]


@dataclass(frozen=True)
class Origin:
    """A place in the call tree where time per step was gained or lost.

    Attributes:
        path: names from the step down.
        state: "added" or "gone" (the path is only on one side), "changed", or "own" for the time of the last name
            outside any recorded call and in calls that change too little to be listed.
        calls: how often per step, on A and on B.
        us: time per step on the host, on A and on B.
    """

    path: tuple[str, ...]
    state: str
    calls: tuple[float, float]
    us: tuple[float, float]

    @property
    def change_us(self) -> float:
        """B's time less A's."""
        return self.us[1] - self.us[0]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "path": list(self.path),
            "state": self.state,
            "calls_per_step": [round(value, 3) for value in self.calls],
            "us_per_step": [round(value, 3) for value in self.us],
            "change_us_per_step": round(self.change_us, 3),
        }


def aligned_tree(a: Side, b: Side) -> Node:
    """Lay the call trees of an average step over each other: the same path of names is the same node.

    Modules are part of the paths where both sides recorded Python frames.
    """
    root = Node("step")
    modules = a.trace.has_stacks and b.trace.has_stacks
    for which, side in enumerate((a, b)):
        root.calls[which], root.us[which] = 1.0, side.rounds.span_us / len(side.rounds)
        _add(root, which, side, modules)
    return root


def origins(root: Node, threshold_us: float) -> tuple[Origin, ...]:
    """Take the difference apart: disjoint places that together make it up, but for trifles.

    What other threads did is listed too, although the step's own thread may have waited for it meanwhile.

    Args:
        root: from `aligned_tree`.
        threshold_us: a place with less change is a trifle.
    """
    found = sorted(_descend(root, (), threshold_us), key=lambda origin: (-abs(origin.change_us), origin.path))
    return tuple(found)


def main_path(root: Node, threshold_us: float) -> Origin | None:
    """Go down the tree as long as one call explains most of the whole change.

    Args:
        root: from `aligned_tree`.
        threshold_us: a smaller change needs no explanation.
    """
    total = root.change_us
    if abs(total) < threshold_us:
        return None
    path: tuple[str, ...] = ()
    node = root
    while node.children:
        child = max(node.children.values(), key=lambda child: child.change_us * total)
        if child.change_us / total < MOST:
            break
        path, node = (*path, child.name), child
    alone = "gone" if not node.calls[1] else "added" if not node.calls[0] else "changed"
    return _origin(node, path, alone, (node.us[0], node.us[1])) if path else None


def _descend(node: Node, path: tuple[str, ...], threshold_us: float) -> Iterator[Origin]:
    if path and not (node.calls[0] and node.calls[1]) and node.name != OTHER_THREADS:
        if abs(node.change_us) >= threshold_us:
            yield _origin(node, path, "added" if node.calls[1] else "gone", (node.us[0], node.us[1]))
        return
    mine = [child for child in node.children.values() if child.name != OTHER_THREADS]
    large = [child for child in mine if abs(child.change_us) >= threshold_us or _hides(child, threshold_us)]
    for child in large:
        yield from _descend(child, (*path, child.name), threshold_us)
    rest = tuple(node.us[i] - sum(child.us[i] for child in large) for i in (0, 1))
    if node.name != OTHER_THREADS and abs(rest[1] - rest[0]) >= threshold_us:
        yield _origin(node, path, "own" if node.children else "changed", (rest[0], rest[1]))
    others = node.children.get(OTHER_THREADS)
    if others:
        yield from _descend(others, (*path, OTHER_THREADS), threshold_us)


def _hides(node: Node, threshold_us: float) -> bool:
    """Whether changes inside cancel out: what one call lost another gained."""
    return any(abs(child.change_us) >= threshold_us or _hides(child, threshold_us) for child in node.children.values())


def _origin(node: Node, path: tuple[str, ...], state: str, us: tuple[float, float]) -> Origin:
    return Origin(path, state, (node.calls[0], node.calls[1]), us)


def _add(root: Node, which: int, side: Side, modules: bool) -> None:
    """Add one side: every distinct path becomes a node."""
    trace, rounds = side.trace, len(side.rounds)
    names = canonical_ids(trace)[1]
    keys, parents, calls, time = _paths(side, modules)
    others = np.unique(trace.events.lane[side.host[trace.events.lane[side.host] != _main_lane(side)]])
    nodes: list[Node] = []
    for key, parent, count, ns in zip(keys, parents, calls, time, strict=True):
        if parent >= 0:
            above = nodes[parent]
        elif key < 0 and len(others):
            above = root.children.setdefault(OTHER_THREADS, Node(OTHER_THREADS))
            above.calls[which] = 1.0
        else:
            above = root
        name = names[key if key >= 0 else -key - 1]
        node = above.children.setdefault(name, Node(name))
        node.calls[which] += count / rounds
        node.us[which] += ns / rounds / 1000
        if above.name == OTHER_THREADS:
            above.us[which] += ns / rounds / 1000
        nodes.append(node)


def _main_lane(side: Side) -> int:
    return side.trace.main_lane


def _paths(side: Side, modules: bool) -> tuple[list[int], list[int], list[int], list[int]]:
    """Every distinct path in the steps, parents first: name, position of the path above or -1, calls, nanoseconds.

    An outermost call of another thread than the main one has its name as -name - 1.
    """
    trace = side.trace
    events, tree = trace.events, trace.frames if modules else trace.calls
    shown = _shown(side, modules)
    ids = canonical_ids(trace)[0][events.name].astype(np.int64)
    parent = _nearest_shown(tree.parent, shown)
    rows = tree.rows[shown[tree.rows]]
    level = _levels(rows, parent)
    path: Int64 = np.full(len(events) + 1, -1, np.int64)
    keys: list[int] = []
    above: list[int] = []
    calls: list[int] = []
    time: list[int] = []
    main = _main_lane(side)
    for depth in range(int(level.max()) + 1 if len(level) else 0):
        here = rows[level == depth]
        key = ids[here]
        if depth == 0:
            key = np.where(events.lane[here] == main, key, -key - 1)
        pairs = np.stack((path[parent[here]], key))
        distinct, which = np.unique(pairs, axis=1, return_inverse=True)
        which = which.reshape(-1)
        path[here] = which + len(keys)
        keys += distinct[1].tolist()
        above += distinct[0].tolist()
        calls += np.bincount(which, minlength=distinct.shape[1]).tolist()
        time += np.bincount(which, events.dur[here], distinct.shape[1]).astype(np.int64).tolist()
    return keys, above, calls, time


def _shown(side: Side, modules: bool) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which rows are part of paths: calls in the steps and, if wanted, modules."""
    events = side.trace.events
    shown = np.zeros(len(events) + 1, np.bool_)
    shown[side.host] = True
    if modules:
        rows = events.find(MODULE, Kind.PYTHON)
        shown[rows[side.rounds.of(events.ts[rows]) >= 0]] = True
    return shown


def _nearest_shown(parent: Int32, shown: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Int32:
    """For each row the innermost shown one around it, or -1."""
    found = np.append(parent, -1)
    while True:
        hidden = np.flatnonzero((found >= 0) & ~shown[found])
        if not len(hidden):
            return found
        found[hidden] = found[found[hidden]]


def _levels(rows: Int32, parent: Int32) -> Int32:
    """How many shown rows are around each."""
    level = np.zeros(len(rows), np.int32)
    above = parent[rows]
    while (inside := above >= 0).any():
        level[inside] += 1
        above = np.where(inside, parent[above], -1)
    return level
