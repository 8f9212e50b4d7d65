"""Layers that compute the same rows several times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import ForwardPass, forward_pass, needless_work
from torchwhy.trace.derived.shapes import Shape, elements, values
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.meaning.arithmetic import DROPOUT
from torchwhy.trace.meaning.kinds import Meaning
from torchwhy.trace.meaning.operators import DRAWS_MASK, EXPAND, REPEATS, SAME_SHAPE, WEIGHTED_DRAW
from torchwhy.trace.model.events import parse_list
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["repeated_rows"]

DRAWS: Final[Meaning] = DROPOUT | DRAWS_MASK | SAME_SHAPE | WEIGHTED_DRAW
"""Operators that may give another result for each copy."""


@rule("D71", "repeated-rows", source="operators on a batch right after each of its rows is repeated", frees="device")
def repeated_rows(trace: Trace, *, share: float = 0.05) -> Iterator[Finding]:
    """Each row of a batch is repeated, and layers compute all copies.

    Sees: `repeat_interleave` or `repeat` along the first dimension, and the operators after it that take the repeated
    rows and no other tensor with as many: up to the first that joins them with something that may differ from copy
    to copy, or that draws random numbers. Together 5% of the window or more. Needs recorded shapes and values.

    Costs: each copy gives the same result. Of k copies all but one are at stake, with their backward pass.

    Fix: compute the rows once, and repeat the result.

    Known problems: tensors are known by their shapes.
    """
    program, window = trace.derived(forward_pass), trace.derived(steady_window)
    parts: dict[int, float] = {}
    repeats, times = [], 0
    writes = trace.events.are(REPEATS, program.rows) & ~trace.events.are(EXPAND, program.rows)
    for i in np.flatnonzero(writes).tolist():
        often = _copies(trace, program, i)
        behind = _on_copies(trace, program, i, often) if often > 1 else []
        parts |= {int(program.rows[k]): 1 - 1 / often for k in behind}
        if behind:
            repeats.append(int(program.rows[i]))
            times = often
    when, needless = needless_work(trace, parts)
    part = window.share(when)
    if not parts or part < share:
        return
    yield Finding(
        title=f"Rows are repeated {times} times, and layers compute all copies: {percent(part)} of the time",
        confidence="medium",
        time_us=needless,
        stretches=when,
        window=window,
        evidence=(*evidence(trace, np.array(repeats, np.int32)), *evidence(trace, np.array(sorted(parts), np.int32))),
        cause="The batch is repeated before these operators, which give the same for each copy.",
        fix="Compute first, and repeat the result: model(x).repeat_interleave(n, dim=0).",
        linked=False,
    )


def _copies(trace: Trace, program: ForwardPass, i: int) -> int:
    """How often an operator repeats each row of its input; 0 where that isn't known, or where more is repeated."""
    given = values(trace, int(program.rows[i]))[1:]
    if not program.shapes[i] or not given:
        return 0
    if given[0].isdigit():  # repeat_interleave(repeats, dim)
        return int(given[0]) if given[1:2] == ["0"] else 0
    often = [one for one in parse_list(given[0]) if isinstance(one, int)]
    along_rows = len(often) == len(program.shapes[i][0]) and all(one == 1 for one in often[1:])
    return often[0] if along_rows else 0


def _on_copies(trace: Trace, program: ForwardPass, i: int, often: int) -> list[int]:
    """The operators after it that take the copies and nothing else with as many rows.

    Up to the first that takes as many elements in another form: what is added there may differ from copy to copy.
    """
    first = program.shapes[i][0]
    rows, found = first[0] * often, list[int]()
    made: Shape = (rows, *first[1:])
    size = elements(made)
    for k in range(i + 1, len(program.rows)):
        taken = program.shapes[k]
        with_rows = [shape for shape in taken if shape[0] == rows]
        if not with_rows and not program.lists[k]:
            if size in map(elements, taken):
                break
            continue  # on something else
        alone = with_rows == taken[:1] and not program.lists[k] and program.step[k] == program.step[i]
        if not alone or trace.events.are(DRAWS, program.rows[k : k + 1]).any() or (not found and taken[0] != made):
            break
        found.append(k)
        size = elements(taken[0])
    return found
