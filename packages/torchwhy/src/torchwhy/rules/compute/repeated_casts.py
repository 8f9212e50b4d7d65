"""Weights that are cast to another type again and again, though they don't change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import ForwardPass, differentiated, forward_pass, work_of
from torchwhy.trace.derived.shapes import Shape, dtypes
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.meaning.arithmetic import CONVOLUTION, LINEAR, TABLE_LOOKUP
from torchwhy.trace.meaning.frames import own_frame
from torchwhy.trace.meaning.tensors import CHANGE_OF_TYPE
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import counted, digits, percent

__all__ = ["repeated_cast"]

READ_WITHIN: Final = 4
"""A weight is read at most this number of operators after its cast: input and bias may be cast in between."""

Cast = tuple[Shape, str, str]
"""The shape of what is cast, its type, and the type that it gets."""


@rule("D39", "repeated-cast", source="a cast whose result an operator takes as its weight", frees="device")
def repeated_cast(trace: Trace, *, share: float = 0.02, steps: int = 3, calls: int = 20) -> Iterator[Finding]:
    """A weight that doesn't change is cast to another type in every step.

    Sees: casts that the program calls (`.to(dtype)`, `.half()`, `.float()`), outside of any operator, whose result the
    next linear layer, convolution or look-up in a table takes as its weight: its shape and another type. The same in
    three steps or more, of a trace without steps 20 times; in 2% of the window. Needs recorded shapes.

    Costs: each reads and writes the whole weight. At stake is the part of the casts' own time that nothing hides.

    Fix: cast once, before the loop, and keep the result.

    Known problems: what an activation, an input or the backward pass goes through is left out, as its values change; so
    are the casts of `torch.autocast`, which lie within operators. A weight that the program changes by hand
    between the steps looks constant; without steps 20 layers of one size look like one that is called 20 times.
    """
    program, window = trace.derived(forward_pass), trace.derived(steady_window)
    casts = _casts(trace, program)
    in_steps = len(trace.steps_found) > 0
    seen: dict[Cast, set[int]] = {}
    for i, cast in casts.items():
        seen.setdefault(cast, set()).add(int(program.step[i]) if in_steps else i)
    chosen = {i: cast for i, cast in casts.items() if len(seen[cast]) >= (steps if in_steps else calls)}
    rows = program.rows[np.array(sorted(chosen), np.intp)]
    when = work_of(trace, rows)
    part = window.share(when)
    if not len(rows) or part < share:
        return
    (shape, before, after), _ = Counter(chosen.values()).most_common(1)[0]
    others = len(set(chosen.values())) - 1
    also = f" and {counted(others, 'other')}" if others else ""
    every = len({int(program.step[i]) for i in chosen})
    times = f"{digits(len(rows) / every)} per step" if in_steps else f"{len(rows):,} times"
    seen_as = evidence(trace, rows)
    line = own_frame(seen_as[0].stack)
    yield Finding(
        title=f"Weights {list(shape)}{also} are cast {before} to {after} {times}: {percent(part)} of the time",
        confidence="medium",
        stretches=when,
        window=window,
        evidence=seen_as,
        cause="The same weight is read and written again each time." + (f" It is cast in {line}." if line else ""),
        fix=f"Cast once, before the loop, and keep the result: weight = weight.to(torch.{after}), or "
        f"model.to(torch.{after}) for all of them.",
    )


def _casts(trace: Trace, program: ForwardPass) -> dict[int, Cast]:
    """The casts of weights that need no gradient, by their place in the forward pass."""
    events, rows = trace.events, program.rows
    reads = events.are(LINEAR | CONVOLUTION | TABLE_LOOKUP, rows)
    is_table = events.are(TABLE_LOOKUP, rows)
    # One that has nothing to do returns its input.
    maybe = events.are(CHANGE_OF_TYPE, rows) & (trace.calls.sizes[rows] > 0) & ~differentiated(trace, rows)
    found = {}
    for i in np.flatnonzero(maybe).tolist():
        reader = next((j for j in range(i + 1, min(i + 1 + READ_WITHIN, len(rows))) if reads[j]), None)
        if reader is None or not program.shapes[i]:
            continue
        shape, place = program.shapes[i][0], 0 if is_table[reader] else 1
        taken, types = program.shapes[reader], dtypes(trace, int(rows[reader]))
        before, after = next(iter(dtypes(trace, int(rows[i]))), ""), types[place] if place < len(types) else ""
        if place >= len(taken) or taken[place] != shape or (place and taken[0] == shape):
            continue
        if before and after and before != after:
            found[i] = (shape, before, after)
    return found
