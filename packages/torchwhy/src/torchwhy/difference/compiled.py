"""What a difference has to say of torch.compile: which side is compiled, and whether that pays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from torchwhy.difference.costs import Side
from torchwhy.difference.totals import Total
from torchwhy.finding import Evidence, Finding
from torchwhy.trace.derived.compiled import compiled_of
from torchwhy.trace.meaning.compiler import COMPILED_CODE, LOOKUP, graph_hash
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.wording import counted, duration, percent

__all__ = ["compiled_conditions", "costs_of_compiling", "is_compiled"]


def is_compiled(side: Side) -> bool:
    """Whether anything in a recording is of torch.compile, in whatever version of PyTorch."""
    return bool(side.trace.derived(compiled_of)) or side.trace.events.any_of(COMPILED_CODE)


def compiled_conditions(a: Side, b: Side) -> Iterator[str]:
    """Say which side is compiled, and where compiled code was found ready in each step."""
    compiled = [side.trace.events.any_of(COMPILED_CODE) for side in (a, b)]
    if compiled[0] != compiled[1]:
        names = ("B", "A") if compiled[1] else ("A", "B")
        before, after = (_operators(side) for side in (a, b))
        numbers = [f"{before:,.0f} operators on A are {after:,.0f} on B"]
        if a.trace.has_gpu and b.trace.has_gpu:
            kernels = [float(side.kernels.counts.sum()) for side in (a, b)]
            numbers.append(f"{kernels[0]:,.0f} kernels are {kernels[1]:,.0f}")
        yield f"{names[0]} runs compiled regions (torch.compile), {names[1]} is eager: {', '.join(numbers)}."
    for name, side in (("A", a), ("B", b)):
        if _always_cached(side):
            steps = counted(len(side.rounds), "step")
            yield f"{name} enters the same compiled graphs in each of its {steps} and compiles none: cache hits."


def costs_of_compiling(a: Side, b: Side, totals: Sequence[Total]) -> Finding | None:
    """A finding where one side is compiled, its host works longer, and its device as long as the other's.

    Args:
        a, b: recordings of one program; the compiled one is either.
        totals: of both.
    """
    if is_compiled(a) == is_compiled(b) or not (a.trace.has_gpu and b.trace.has_gpu):
        return None
    compiled, eager = (b, a) if is_compiled(b) else (a, b)
    found = {total.name: total for total in totals}
    busy, host = found.get("device busy"), found.get("host busy")
    if busy is None or host is None or busy.changed or not host.changed:
        return None
    after, before = (host.b or 0.0, host.a or 0.0) if compiled is b else (host.a or 0.0, host.b or 0.0)
    if after <= before:
        return None
    window = compiled.trace.window
    operators = _operators(eager)
    lookups = compiled.trace.events.of(LOOKUP)
    return Finding(
        title=f"torch.compile makes the host work {duration(after - before)} longer per step "
        f"({duration(before)} -> {duration(after)}), and the device as long as before",
        severity="medium" if after > 1.2 * before else "low",
        confidence="medium",
        time_us=after - before,
        window=window,
        evidence=(
            Evidence(
                LOOKUP.pattern,
                len(lookups),
                float(compiled.trace.events.dur[lookups].sum()) / 1000,
                rows=lookups,
            ),
        )
        if len(lookups)
        else (),
        cause=f"Each call goes through guards and the wrappers of Dynamo, AOTAutograd and Inductor before it runs what "
        f"eager mode calls at once; with {operators:,.0f} operators per step little is saved in return "
        f"({percent((after - before) / before)} more on the host).",
        fix='Compile a larger part of the program, replay it as a graph (mode="reduce-overhead"), or leave it eager.',
        slug="compiled-for-nothing",
        source="a difference: compiled, the host's time up, the device's unchanged",
    )


def _operators(side: Side) -> float:
    return float(np.count_nonzero(side.trace.events.kind[side.host] == Kind.OPERATOR)) / len(side.rounds)


def _always_cached(side: Side) -> bool:
    """Whether each step calls the same compiled graphs, and none compiles."""
    found, events = side.trace.derived(compiled_of), side.trace.events
    if not side.rounds.are_steps or not len(found.graphs) or found.compiling.overlap(
        side.rounds.starts, side.rounds.ends
    ).any():  # fmt: skip
        return False
    step = side.rounds.of(events.ts[found.graphs])
    graphs = [graph_hash(events.named(row)) for row in found.graphs.tolist()]
    called = [
        sorted(graph for graph, at in zip(graphs, step.tolist(), strict=True) if at == i)
        for i in range(len(side.rounds))
    ]
    return bool(called[0]) and all(graphs == called[0] for graphs in called)
