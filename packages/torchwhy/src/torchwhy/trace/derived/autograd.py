"""Which operator of the forward pass each operator of the backward pass belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from torchwhy.trace.file.columns import Int32, Int64
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.operators import BACKWARD, SLICE_WRITE_BACKWARD

if TYPE_CHECKING:
    from torchwhy.trace.model.events import Events
    from torchwhy.trace.model.trace import Trace

__all__ = ["Autograd", "autograd", "graph_makers"]

FLOW: Final = "fwdbwd"


@dataclass(frozen=True)
class Autograd:
    """Pairs of operators; both arrays have one entry per pair.

    Attributes:
        backward: rows of the backward pass, ascending: the outermost event of each node of the graph.
        forward: the operator that made the node.
    """

    backward: Int32
    forward: Int32

    def forward_of(self, row: int) -> int:
        """The operator of the forward pass to which one of the backward pass belongs, or -1."""
        i = int(np.searchsorted(self.backward, row))
        return int(self.forward[i]) if i < len(self.backward) and self.backward[i] == row else -1

    def backward_of(self, row: int) -> list[int]:
        """The nodes of the backward pass that belong to an operator of the forward pass."""
        low, high = np.searchsorted(self.forward[self._by_forward], [row, row + 1])
        return sorted(self.backward[self._by_forward][low:high].tolist())

    @cached_property
    def _by_forward(self) -> Int64:
        found: Int64 = np.argsort(self.forward, kind="stable")
        return found

    def __len__(self) -> int:
        return len(self.backward)


def autograd(trace: Trace) -> Autograd:
    """Pair forward and backward; `trace.derived(autograd)` computes it once.

    By `Sequence number`, which PyTorch gives to both: of the forward operators with one number the last to begin made
    the node, and the number may come back on another thread, so the last one before the backward operator counts.
    Where no numbers were recorded, by the `fwdbwd` arrows of the file. The node of a write into a view has a number
    that no operator has; the node of the operator that writes is called within it.
    """
    events = trace.events
    rows = events.rows(Kind.OPERATOR)
    numbers = events.integers("Sequence number", rows)
    rows, numbers = rows[numbers >= 0], numbers[numbers >= 0]
    if not len(rows):
        return _sorted(*_by_flows(events))
    backward = (events.integers("Fwd thread id", rows) > 0) | events.are(BACKWARD, rows)
    parents = trace.calls.parent[rows]
    number = np.full(len(events) + 1, -1, np.int64)
    number[rows[backward]] = numbers[backward]
    nested = number[parents] == numbers  # the last entry answers for "no parent"
    second = backward & ~nested
    used, made = _by_numbers(events, rows[~backward], numbers[~backward], rows[second], numbers[second])
    return _sorted(_with_writes(trace, used), made)


def _with_writes(trace: Trace, nodes: Int32) -> Int32:
    """Nodes of the backward pass, for those called by the node of a write into a view that one."""
    found, parent = nodes.copy(), trace.calls.parent
    while True:
        inside = parent[found] >= 0
        inside[inside] = trace.events.are(SLICE_WRITE_BACKWARD, parent[found[inside]])
        if not inside.any():
            return found
        found[inside] = parent[found[inside]]


def graph_makers(trace: Trace) -> Int32:
    """The nodes of the backward pass that record a graph of their gradients, as with `create_graph=True`.

    The last operator that such a node calls has a sequence number. Recomputed layers (checkpointing) have one, too, but
    the node's own formula follows them. `torch.func` records always, and calls each operator again within itself: its
    nodes are left out.
    """
    events, parents = trace.events, trace.calls.parent
    rows = events.rows(Kind.OPERATOR)
    rows = rows[(parents[rows] >= 0) & ~events.are(BACKWARD, rows)]
    again = rows[events.name[rows] == events.name[parents[rows]]]
    rows = rows[events.are(BACKWARD, parents[rows])]
    rows = rows[np.lexsort((events.ts[rows], parents[rows]))]
    last = rows[np.append(np.diff(parents[rows]) != 0, True)[: len(rows)]]
    recorded = (events.integers("Sequence number", last) >= 0) & ~np.isin(last, parents[again])
    found: Int32 = np.sort(parents[last[recorded]])
    return found


def _by_numbers(events: Events, first: Int32, made: Int64, second: Int32, used: Int64) -> tuple[Int32, Int32]:
    count = len(first)
    number = np.concatenate((made, used))
    order = np.lexsort((np.repeat([0, 1], [count, len(second)]), events.ts[np.concatenate((first, second))], number))
    latest = np.maximum.accumulate(np.where(order < count, np.arange(len(order)), -1))
    places = np.flatnonzero(order >= count)
    maker = latest[places]
    paired = maker >= 0
    paired[paired] = number[order[maker[paired]]] == number[order[places[paired]]]
    return second[order[places[paired]] - count], first[order[maker[paired]]]


def _by_flows(events: Events) -> tuple[Int32, Int32]:
    nothing = np.empty(0, np.int32)
    if FLOW not in events.texts:
        return nothing, nothing
    arrows = np.flatnonzero(events.name == events.texts.index(FLOW))
    tails, heads = arrows[events.phase[arrows] == ord("s")], arrows[events.phase[arrows] == ord("f")]
    rows = events.rows(Kind.OPERATOR)
    rows = rows[np.isin(events.ts[rows], events.ts[arrows])]
    at = {(int(events.lane[row]), int(events.ts[row])): row for row in rows.tolist()}  # the innermost stays
    tail = {int(events.flow[i]): at.get((int(events.lane[i]), int(events.ts[i])), -1) for i in tails.tolist()}
    pairs = [
        (at.get((int(events.lane[i]), int(events.ts[i])), -1), tail.get(int(events.flow[i]), -1))
        for i in heads.tolist()
    ]
    pairs = [pair for pair in pairs if min(pair) >= 0]
    return np.array([b for b, _ in pairs], np.int32), np.array([f for _, f in pairs], np.int32)


def _sorted(backward: Int32, forward: Int32) -> Autograd:
    order = np.argsort(backward, kind="stable")
    return Autograd(backward[order], forward[order])
