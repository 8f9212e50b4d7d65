"""Python loops over a model's weights, outside of its optimizer: such as moving averages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import differentiated, forward_pass
from torchwhy.trace.derived.idle import at_stake
from torchwhy.trace.derived.shapes import Shape, shapes
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.operators import ACCUMULATE_GRADIENT, ON_PAIRS
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["WeightLoops", "weight_for_loop", "weight_loops"]

APART: Final = 8
"""At most this number of the program's operators is between two weights' operators: views, products, conversions of
each."""


@dataclass(frozen=True)
class WeightLoops:
    """Loops that take two tensors of each weight's shape, one weight after another.

    Attributes:
        rows: the operators that take such a pair.
        calls: all operators in the loops, with what else is called for each weight.
        spans: from the first to the last operator of each loop.
    """

    rows: Int32
    calls: Int32
    spans: Intervals


def weight_loops(trace: Trace) -> WeightLoops:
    """Find them; `trace.derived(weight_loops)` does it once. Needs recorded shapes and a backward pass."""
    program, events = trace.derived(forward_pass), trace.events
    weights = _weights(trace)
    pairs = [
        i
        for i in np.flatnonzero(events.are(ON_PAIRS, program.rows) & ~differentiated(trace, program.rows)).tolist()
        if len(program.shapes[i]) > 1
        and program.shapes[i][0] == program.shapes[i][1]
        and program.shapes[i][0] in weights
    ]
    places = np.array(pairs, np.intp)
    apart = (np.diff(places) > APART) | (np.diff(program.step[places]) != 0)
    found = [
        run
        for run in np.split(places, np.flatnonzero(apart) + 1)
        if len(run) >= sum(weights.values()) and {program.shapes[i][0] for i in run.tolist()} == {*weights}
    ]
    none = np.empty(0, np.int32)
    if not found or not weights:
        return WeightLoops(none, none, Intervals.union([], []))
    spans = Intervals.union(
        [events.ts[program.rows[run[0]]] for run in found], [events.end[program.rows[run[-1]]] for run in found]
    )
    calls = program.rows[events.covered(program.rows, spans) > 0]
    return WeightLoops(program.rows[np.concatenate(found)], calls, spans)


def _weights(trace: Trace) -> dict[Shape, int]:
    """How many weights of each shape get a gradient in a step."""
    events = trace.events
    nodes = events.of(ACCUMULATE_GRADIENT)
    nodes = nodes[trace.in_steps(nodes)]
    nodes = nodes[trace.step_of(nodes) == trace.step_of(nodes[-1:])] if len(nodes) else nodes  # each step has the same
    found: dict[Shape, int] = {}
    for row in nodes.tolist():
        shape = next(
            (taken[0] for one in (row, *trace.calls.inside(row).tolist()) if (taken := shapes(trace, one))), None
        )
        if shape is not None:
            found[shape] = found.get(shape, 0) + 1
    return found


@rule(
    "B47", "weight-for-loop", source="operators on pairs of tensors that have the shapes of the gradients", frees="host"
)
def weight_for_loop(
    trace: Trace, *, weights: int = 20, share: float = 0.02, short_us: float = 20.0
) -> Iterator[Finding]:
    """A Python loop updates something of each weight, such as a moving average.

    Sees: operators on two tensors of one shape (add, lerp, copy) that the program calls outside of the optimizer and
    that no gradient goes through: as many in a row as there are gradients in a step, in all their shapes, and 20 or
    more. What the loop takes, except for operators of 20 us and more, is 2% of the window. On a GPU, only the time
    counts for which it keeps the device waiting. Needs recorded shapes.

    Costs: a few microseconds of Python and dispatch for each operator on each weight, however small.

    Fix: one call for all weights: `torch._foreach_lerp_(averages, weights, 1 - decay)`, as
    `torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(decay))` does;
    `torch._foreach_copy_`, `torch._foreach_add_` for copies and sums.

    Known problems: weights are known by their shapes. Operators on large weights take their time in a single call, too.
    """
    events, window = trace.events, trace.derived(steady_window)
    found = trace.derived(weight_loops)
    if not len(found.spans) or len(found.rows) < weights * len(found.spans):
        return
    long_ = found.calls[events.dur[found.calls] >= short_us * 1000]
    overhead = (found.spans - events.times_of(long_)).clip(window.start, window.end)
    part = window.share(at_stake(trace, overhead))
    if part < share:
        return
    idle = "the device waits meanwhile for" if trace.has_gpu else "that takes"
    calls = len(found.calls) / len(found.spans)
    yield Finding(
        title=f"A loop goes through the weights one by one, in {calls:,.0f} operators each time; {idle} "
        f"{percent(part)} of the time",
        confidence="medium",
        stretches=overhead,
        window=window,
        evidence=evidence(trace, found.calls),
        cause="The operators take two tensors of the shape of each weight, as a moving average of the weights does.",
        fix="One call for all of them: torch._foreach_lerp_(averages, weights, 1 - decay), or "
        "torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn; torch._foreach_copy_ or _foreach_add_ for "
        "copies and sums.",
    )
