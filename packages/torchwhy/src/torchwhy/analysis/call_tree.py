"""Who calls whom: labels, modules and operators as a tree of which only what takes long is kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Final

import msgspec

from torchwhy.trace.meaning.annotations import STEP
from torchwhy.trace.meaning.frames import MODULE
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.model.trace import Trace

__all__ = ["TreeCall", "call_tree"]

MOST: Final = 40
"""Calls of a tree, so that it can be overlooked."""

LEAST: Final = 0.01
"""A call that takes a smaller part of the window, on the host and on the device, is left out with all inside it."""

OTHER_THREADS: Final = "(other threads)"


class TreeCall(msgspec.Struct, frozen=True):
    """A label, module or operator at its place; calls of one name at one place count as one.

    Attributes:
        name: of the call; "nn.Module: Linear_0" for a module where stacks were recorded.
        depth: how many calls of the tree are around it.
        calls: how often it begins in the window.
        host_us: its time, that of calls inside included.
        device_us: of the device work launched in it.
    """

    name: str
    depth: int
    calls: int
    host_us: float
    device_us: float


@dataclass
class _Node:
    name: str
    depth: int
    calls: int = 0
    host_ns: int = 0
    device_ns: int = 0
    inside: dict[str, _Node] = field(default_factory=dict)

    @property
    def longest(self) -> int:
        return max(self.host_ns, self.device_ns)


def call_tree(trace: Trace) -> tuple[TreeCall, ...]:
    """Return the calls of the window, each followed by those inside it; of neighbours the longest first."""
    top = _Node("", -1)
    _fill(trace, top)
    kept = _longest(top, LEAST * (trace.window.end - trace.window.start))
    return tuple(
        TreeCall(node.name, node.depth, node.calls, node.host_ns / 1000, node.device_ns / 1000)
        for node in _in_order(top)
        if id(node) in kept
    )


def _fill(trace: Trace, top: _Node) -> None:
    events, tree = trace.events, trace.frames
    rows = tree.nested  # parents come first
    is_call = events.are(MODULE, rows)
    for kind in (Kind.ANNOTATION, Kind.OPERATOR):
        is_call |= events.kind[rows] == kind
    is_call &= ~events.are(STEP, rows)
    counts = (events.ts[rows] >= trace.window.start) & (events.ts[rows] < trace.window.end)
    places: dict[int, tuple[_Node, ...]] = {}  # the nodes of each row, from the outermost
    others = _Node(OTHER_THREADS, 0)
    columns = (rows, tree.parent[rows], events.name[rows], events.dur[rows], events.lane[rows], is_call, counts)
    for row, parent, name, lasts, lane, shown, counted in zip(*(one.tolist() for one in columns), strict=True):
        around = places.get(parent)
        if around is None:
            around = (top,) if lane == trace.main_lane else (top, others)
        if shown:
            node = _inside(around[-1], events.texts[name])
            if counted:
                node.calls, node.host_ns = node.calls + 1, node.host_ns + lasts
            around = (*around, node)
        places[row] = around
    work = trace.links.work
    work = work[(events.ts[work] >= trace.window.start) & (events.ts[work] < trace.window.end)]
    for maker, lasts in zip(trace.links.maker_of(work).tolist(), events.dur[work].tolist(), strict=True):
        for node in places.get(maker, ()):
            node.device_ns += lasts
    if others.inside:
        others.calls = sum(node.calls for node in others.inside.values())
        others.host_ns = sum(node.host_ns for node in others.inside.values())
        top.inside[OTHER_THREADS] = others


def _inside(node: _Node, name: str) -> _Node:
    found = node.inside.get(name)
    if found is None:
        found = node.inside[name] = _Node(name, node.depth + 1)
    return found


def _longest(top: _Node, least: float) -> set[int]:
    """The nodes to keep: the longest ones, none without the one around it."""
    kept: set[int] = set()
    waiting: list[tuple[int, int, _Node]] = []

    def wait(node: _Node) -> None:
        for one in node.inside.values():
            if one.longest >= least:
                heappush(waiting, (-one.longest, id(one), one))

    wait(top)
    while waiting and len(kept) < MOST:
        _, which, node = heappop(waiting)
        kept.add(which)
        wait(node)
    return kept


def _in_order(node: _Node) -> Iterator[_Node]:
    for one in sorted(node.inside.values(), key=lambda one: (one.name == OTHER_THREADS, -one.longest)):
        yield one
        yield from _in_order(one)
