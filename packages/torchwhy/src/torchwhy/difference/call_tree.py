"""The call trees of both sides laid over each other, to see where a difference of time arises."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from torchwhy.difference.costs import Side, stable_ids
from torchwhy.trace.file.columns import Int32, Int64
from torchwhy.trace.meaning.frames import MODULE

__all__ = ["OTHER_THREADS", "Node", "Origin", "aligned_tree", "main_path", "origins"]

OTHER_THREADS: Final = "(other threads)"
"""Stands between the step and what other threads, such as autograd's, did meanwhile."""

MOST: Final = 0.6
"""The part of all that takes less, or more, that a call must have to explain most of it."""

SUBSTITUTE: Final = 0.2
"""Added calls count as replacing adjacent removed ones if each takes this part of the other's time, or more."""


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
        state: "added" or "gone" (the path is only on one side), "replaced" (calls inside the last name are gone, and
            others came), "changed", or "own" for the time of the last name outside any recorded call and in calls that
            change too little to be listed.
        calls: how often per step, on A and on B.
        us: time per step on the host, on A and on B.
        replaced: names of the calls that are gone, and of those that came, the most time first.
        share: the part of all that takes less, or of all that takes more, on the step's own thread; None on others.
    """

    path: tuple[str, ...]
    state: str
    calls: tuple[float, float]
    us: tuple[float, float]
    replaced: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    share: float | None = None

    @property
    def change_us(self) -> float:
        """B's time less A's."""
        return self.us[1] - self.us[0]


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
    """Take the difference apart: disjoint places that together make it up, except for trifles.

    What other threads did is listed too, although the step's own thread may have waited for it meanwhile.

    Args:
        root: from `aligned_tree`.
        threshold_us: a place with less change is a trifle.
    """
    found = sorted(_descend(root, (), threshold_us), key=lambda origin: (-abs(origin.change_us), origin.path))
    gross = _gross(found)
    return tuple(
        origin
        if OTHER_THREADS in origin.path
        else replace(origin, share=abs(origin.change_us) / gross[origin.change_us > 0])
        for origin in found
    )


def _gross(places: Sequence[Origin]) -> tuple[float, float]:
    """The time that is lost in some of these places, and what is gained in others; on the step's own thread."""
    changes = [origin.change_us for origin in places if OTHER_THREADS not in origin.path]
    return -sum(us for us in changes if us < 0), sum(us for us in changes if us > 0)


def main_path(root: Node, places: Sequence[Origin], threshold_us: float) -> Origin | None:
    """Go down the tree as long as one call explains most of what takes less, or more, than before.

    What is gone and what came inside one call count together, as that call's change. So no share is above 1.

    Args:
        root: from `aligned_tree`.
        places: from `origins`.
        threshold_us: a smaller change of the whole needs no explanation.
    """
    total = root.change_us
    own = [origin for origin in places if OTHER_THREADS not in origin.path]
    gross = _gross(own)[total > 0]
    if abs(total) < threshold_us or not gross:
        return None
    path: tuple[str, ...] = ()
    node, share = root, 0.0
    while True:
        net = {
            name: sum(origin.change_us for origin in own if origin.path[: len(path) + 1] == (*path, name)) / gross
            for name in node.children
        }
        name = max(net, key=lambda name: abs(net[name]) if (net[name] > 0) == (total > 0) else 0.0, default="")
        if not name or (net[name] > 0) != (total > 0) or abs(net[name]) < MOST:
            break
        path, node, share = (*path, name), node.children[name], abs(net[name])
    alone = "gone" if not node.calls[1] else "added" if not node.calls[0] else "changed"
    return replace(_origin(node, path, alone, (node.us[0], node.us[1])), share=share) if path else None


def _descend(node: Node, path: tuple[str, ...], threshold_us: float) -> Iterator[Origin]:
    if path and not (node.calls[0] and node.calls[1]) and node.name != OTHER_THREADS:
        if abs(node.change_us) >= threshold_us:
            yield _origin(node, path, "added" if node.calls[1] else "gone", (node.us[0], node.us[1]))
        return
    mine = [child for child in node.children.values() if child.name != OTHER_THREADS]
    gone, came = (_one_sided(mine, which, threshold_us) for which in (0, 1))
    if min(_sum(gone, 0), _sum(came, 1)) >= SUBSTITUTE * max(_sum(gone, 0), _sum(came, 1), 1e-9):
        swapped = Origin(
            path,
            "replaced",
            (sum(child.calls[0] for child in gone), sum(child.calls[1] for child in came)),
            (_sum(gone, 0), _sum(came, 1)),
            (tuple(child.name for child in gone), tuple(child.name for child in came)),
        )
        alone = {child.name for child in (*gone, *came)}
        mine = [child for child in mine if child.name not in alone]
        taken = swapped.us
        if abs(swapped.change_us) >= threshold_us:
            yield swapped
    else:
        taken = (0.0, 0.0)
    large = [child for child in mine if abs(child.change_us) >= threshold_us or _hides(child, threshold_us)]
    for child in large:
        yield from _descend(child, (*path, child.name), threshold_us)
    rest = tuple(node.us[i] - taken[i] - sum(child.us[i] for child in large) for i in (0, 1))
    if node.name != OTHER_THREADS and abs(rest[1] - rest[0]) >= threshold_us:
        yield _origin(node, path, "own" if node.children else "changed", (rest[0], rest[1]))
    others = node.children.get(OTHER_THREADS)
    if others:
        yield from _descend(others, (*path, OTHER_THREADS), threshold_us)


def _one_sided(nodes: Sequence[Node], which: int, threshold_us: float) -> list[Node]:
    """Those that are only on A (0) or on B (1) and matter, the most time first."""
    found = [node for node in nodes if not node.calls[1 - which] and node.us[which] >= threshold_us]
    return sorted(found, key=lambda node: (-node.us[which], node.name))


def _sum(nodes: Sequence[Node], which: int) -> float:
    return sum(node.us[which] for node in nodes)


def _hides(node: Node, threshold_us: float) -> bool:
    """Whether changes inside cancel out: what one call lost another gained."""
    return any(abs(child.change_us) >= threshold_us or _hides(child, threshold_us) for child in node.children.values())


def _origin(node: Node, path: tuple[str, ...], state: str, us: tuple[float, float]) -> Origin:
    return Origin(path, state, (node.calls[0], node.calls[1]), us)


def _add(root: Node, which: int, side: Side, modules: bool) -> None:
    """Add one side: every distinct path becomes a node."""
    trace, rounds = side.trace, len(side.rounds)
    names = stable_ids(trace)[1]
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
    ids = stable_ids(trace)[0][events.name].astype(np.int64)
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
        rows = events.of(MODULE)
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
