"""Tensors made on the host and copied, instead of made on the device."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.copies.transfers import transfers
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.device_time import device_time
from torchwhy.trace.derived.replay import replay
from torchwhy.trace.derived.shapes import elements, shapes
from torchwhy.trace.file.columns import Int32, Int64
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.operators import short_operator
from torchwhy.trace.meaning.tensors import MAKE_TENSOR, MOVE_TENSOR
from torchwhy.trace.model.trace import Trace

__all__ = ["create_on_cpu_then_copy"]


@rule(
    "C10",
    "create-on-cpu-then-copy",
    source="torch.profiler's pattern matcher, extra CUDA copy; needs the shapes of operators",
    needs={"gpu"},
    frees="all",
)
def create_on_cpu_then_copy(trace: Trace, *, share: float = 0.002) -> Iterator[Finding]:
    """A tensor is made on the host and copied to the device.

    Sees: an operator that makes or fills a tensor without using the device (`aten::zeros`, `normal_`, `arange`, ...),
    directly followed on its thread by `aten::to` that copies a tensor of the same number of elements to the device.

    Costs: the host's time to fill it, a copy over the bus, and usually a wait for it.

    Fix: `torch.zeros(..., device=device)`: the device fills it itself.

    Known problems: only a maker directly before the copy is seen. Values made by a generator on the host differ from
    the device's, which may matter for reproducible runs.
    """
    copies, events, parent = trace.derived(transfers), trace.events, trace.calls.parent
    if not events.has("Input Dims"):
        return
    chosen = copies.way("HtoD") & (copies.operator >= 0)
    on_device = trace.derived(device_time).total
    pairs, beside = [], dict[int, tuple[Int32, Int64]]()
    for row in np.unique(copies.operator[chosen]).tolist():
        outer = row
        while parent[outer] >= 0 and MOVE_TENSOR.names(trace.name(int(parent[outer]))):
            outer = int(parent[outer])
        if not MOVE_TENSOR.names(trace.name(outer)) or not trace.in_steps(np.array([outer], np.int32))[0]:
            continue
        maker = _before(trace, outer, beside)
        # Making a tensor ends in filling it; what was filled is the last child's first input.
        if (
            maker >= 0
            and MAKE_TENSOR.names(trace.name(maker))
            and not on_device[maker]
            and _elements(trace, outer) == _made(trace, maker) > 0
        ):
            pairs.append((maker, outer))
    if not pairs:
        return
    rows = np.array(pairs, np.int32).reshape(-1)
    spent = trace.when(rows)
    part = trace.window.share(spent)
    if part < share:
        return
    names = sorted({short_operator(trace.name(maker)) for maker, _ in pairs})
    copied = trace.when(copies.rows[chosen & (trace.events.covered(copies.operator, spent) > 0)])
    queue = trace.derived(replay)
    saved = queue.saved(host=spent, device=copied - trace.gpu.compute, awaited=copied)
    yield Finding(
        title=f"{len(pairs)} tensors are made on the host ({', '.join(names[:3])}) and then copied to the device",
        confidence="medium",
        time_us=saved / 1000,
        stretches=spent | copied | queue.waits_for(copied),
        window=trace.window,
        evidence=evidence(trace, rows),
        cause="The tensor is made without device=, so the host fills it and the copy follows.",
        fix="Make it where it is used: pass device=... to the call that makes it.",
    )


def _before(trace: Trace, row: int, beside: dict[int, tuple[Int32, Int64]]) -> int:
    """The operator that precedes one on its thread, below the same parent, or -1; `beside` keeps what was looked up."""
    events, parent = trace.events, int(trace.calls.parent[row])
    key = parent if parent >= 0 else -1 - int(events.lane[row])
    if key not in beside:
        siblings = trace.calls.children(parent) if parent >= 0 else _outermost(trace, int(events.lane[row]))
        siblings = siblings[events.kind[siblings] == Kind.OPERATOR]
        beside[key] = siblings, events.ts[siblings]
    siblings, times = beside[key]
    place = int(np.searchsorted(times, events.ts[row]))
    return int(siblings[place - 1]) if place else -1


def _outermost(trace: Trace, lane: int) -> Int32:
    rows = trace.events.rows(Kind.OPERATOR)
    found: Int32 = rows[(trace.calls.parent[rows] < 0) & (trace.events.lane[rows] == lane)]
    return found


def _elements(trace: Trace, row: int) -> int:
    first = next(iter(shapes(trace, row)), None)
    return elements(first) if first else 0


def _made(trace: Trace, maker: int) -> int:
    """How many elements a maker filled: of the first input it or its last filling child has."""
    children = trace.calls.children(maker)
    for row in (*reversed(children.tolist()), maker):
        if trace.events.kind[row] == Kind.OPERATOR and (found := _elements(trace, row)):
            return found
    return 0
