"""A tensor that is filled part by part, under autograd."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.autograd import autograd
from torchwhy.trace.derived.forward_pass import needless_work
from torchwhy.trace.derived.shapes import Shape, elements, shapes
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.meaning.operators import AUTOGRAD_NODE, MOVE, SLICE_WRITE_BACKWARD
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["slice_writes"]

LEAST: Final = 8
"""Writes a step, and how many times larger the tensor is than what is written: below, joining parts copies as much."""


@rule(
    "C18", "slice-writes", source="shapes of torch::autograd::CopySlices and of the copy that made it", frees="device"
)
def slice_writes(trace: Trace, *, share: float = 0.05) -> Iterator[Finding]:
    """A tensor is filled slice by slice, and the backward pass copies all of its gradient for each.

    Sees: eight `torch::autograd::CopySlices` a step or more, of one tensor's shape, each made by `aten::copy_` of a
    part with at most an eighth of its elements; what is written in a step fits into the tensor. They take 5% of the
    window or more.

    Costs: each write into a view, as in `states[t] = x`, becomes a node that copies the gradient of the whole tensor to
    pass one part of it on. The work grows with the square of the number of parts.

    Fix: collect the parts in a list, and `torch.stack` or `torch.cat` them after the loop: its backward pass hands each
    its part.

    Known problems: parts written again and again into the same place look like parts side by side. Those that read the
    tensor while it is filled need the parts from the list instead.
    """
    pairs, window, events = trace.derived(autograd), trace.derived(steady_window), trace.events
    mine = events.are(SLICE_WRITE_BACKWARD, pairs.backward) & events.are(MOVE, pairs.forward)
    mine &= events.begin_in(pairs.backward, window.start, window.end)
    mine[mine] = trace.in_steps(pairs.backward[mine])
    filled: dict[Shape, list[tuple[int, int]]] = {}
    wholes = _wholes(trace)
    for node, write in zip(pairs.backward[mine].tolist(), pairs.forward[mine].tolist(), strict=True):
        whole, part = wholes.get(node, ()), shapes(trace, write)[:1]
        if whole and part and LEAST * elements(part[0]) <= elements(whole):
            filled.setdefault(whole, []).append((node, write))
    for whole, both in filled.items():
        nodes, writes = np.array(both, np.int32).T
        step = trace.step_of(nodes)
        sizes = np.array([elements(shapes(trace, int(row))[0]) for row in writes])
        often = int(np.median(np.bincount(step)[np.unique(step)]))
        if often < LEAST or float(np.median(np.bincount(step, sizes)[np.unique(step)])) > elements(whole):
            continue
        when, needless = needless_work(
            trace, dict(zip(nodes.tolist(), (1 - sizes / elements(whole)).tolist(), strict=True))
        )
        if window.share(when) < share:
            continue
        size = " x ".join(map(str, whole))
        yield Finding(
            title=f"For each of {often:,} writes into a tensor ({size}), its whole gradient is copied: "
            f"{percent(window.share(when))} of the time",
            confidence="high",
            time_us=needless,
            stretches=when,
            window=window,
            evidence=(*evidence(trace, writes), *evidence(trace, nodes)),
            cause="A write into a part of a tensor under autograd is a node that needs the gradient of all of it.",
            fix="Collect the parts in a list and torch.stack (or torch.cat) them after the loop.",
            linked=True,
        )


def _wholes(trace: Trace) -> dict[int, Shape]:
    """For each such node the shape of the tensor that is written into."""
    events, parent = trace.events, trace.calls.parent
    inner = events.of(SLICE_WRITE_BACKWARD)
    inner = inner[~events.are(AUTOGRAD_NODE, inner)]
    found = {int(row): next(iter(shapes(trace, int(row))), ()) for row in inner}
    return found | {int(parent[row]): shape for row, shape in found.items()}
