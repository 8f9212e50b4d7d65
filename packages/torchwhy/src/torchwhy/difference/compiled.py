"""Compilation in a comparison: which side is compiled, and whether that pays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from torchwhy.difference.costs import Side
from torchwhy.difference.noise import MARGIN
from torchwhy.difference.step_times import StepTimes
from torchwhy.difference.totals import Total
from torchwhy.finding import Evidence, Finding, severity_of
from torchwhy.trace.derived.compiled import compiled_of
from torchwhy.trace.meaning.compiler import COMPILED_CODE, ENTERING, LOOKUP, graph_hash
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.wording import counted, digits, duration, percent

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
        yield from _unfused(*(a, b)[:: 1 if compiled[1] else -1])
    for name, side in (("A", a), ("B", b)):
        if _always_cached(side):
            steps = counted(len(side.rounds), "step")
            yield f"{name} enters the same compiled graphs in each of its {steps} and compiles none: cache hits."


def costs_of_compiling(a: Side, b: Side, totals: Sequence[Total], times: StepTimes) -> Finding | None:
    """A finding where one side is compiled, its host works longer in a step, and its steps are no shorter.

    At stake is by how much the steps are longer: the device's work may hide the rest. On a CPU the host's work is all.

    Args:
        a, b: recordings of one program, on one device; the compiled one is either.
        totals: of both.
        times: of their steps.
    """
    if is_compiled(a) == is_compiled(b) or not (a.rounds.are_steps and b.rounds.are_steps):
        return None
    which = int(is_compiled(b))
    compiled, eager = (a, b)[which], (a, b)[1 - which]
    host = next((total for total in totals if total.name == "host busy"), None)
    if host is None:
        if a.trace.has_gpu or b.trace.has_gpu:
            return None
        pair, changed = times.median_us, times.shift.beyond_noise or not times.shift.judged
    else:
        pair, changed = (host.a or 0.0, host.b or 0.0), host.changed
    before, after = pair[1 - which], pair[which]
    steps = times.median_us[1 - which], times.median_us[which]
    if not changed or after <= (1 + MARGIN) * before or steps[1] < steps[0] / (1 + MARGIN):
        return None
    lost, window = max(steps[1] - steps[0], 0.0), compiled.trace.window
    operators = _operators(eager)
    lookups = compiled.trace.events.of(LOOKUP)
    return Finding(
        title=f"torch.compile makes the host work {duration(after - before)} longer per step "
        f"({duration(before)} -> {duration(after)}), and steps take no less time",
        severity=severity_of(lost / steps[1]) if lost else "low",
        confidence="medium" if times.shift.judged else "low",
        time_us=lost,
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
        f"eager mode calls at once; its {operators:,.0f} operators per step cost less than that "
        f"({percent((after - before) / before)} more on the host).",
        fix='Compile a larger part of the program, replay it as a graph (mode="reduce-overhead"), or leave it eager.',
        slug="compiled-for-nothing",
        source="a difference: compiled, the host's time up, the steps' no shorter",
    )


def _unfused(eager: Side, compiled: Side) -> Iterator[str]:
    """Say so where a step calls fewer operators and the device has as much to do: a call was fused, not a kernel."""
    before, after = (len(side.work) / len(side.rounds) for side in (eager, compiled))
    if 0 < before <= after and _operators(compiled) < _operators(eager):
        yield (
            f"Operators were joined, kernels were not: the device has {digits(after)} pieces of work per step with "
            f"torch.compile, {digits(before)} without."
        )


def _operators(side: Side) -> float:
    """Operators per step, without the wrappers around compiled code."""
    events = side.trace.events
    rows = side.host[events.kind[side.host] == Kind.OPERATOR]
    return float(np.count_nonzero(~events.are(COMPILED_CODE | ENTERING, rows))) / len(side.rounds)


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
