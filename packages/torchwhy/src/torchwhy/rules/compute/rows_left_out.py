"""Elementwise work on all rows of a tensor, of which few are read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import ForwardPass, backward_of, forward_pass, work_of
from torchwhy.trace.derived.shapes import elements
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.meaning.arithmetic import ELEMENTWISE
from torchwhy.trace.meaning.frames import own_frame
from torchwhy.trace.meaning.operators import READS_ROWS, SAME_SHAPE
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["rows_left_out"]

BEFORE: Final = 20
"""So many operators before the rows are read are looked at."""

AFTER: Final = 8
"""One of so many operators behind it reads the chosen rows: its shape says how many they are."""


@rule("D41", "rows-left-out", source="elementwise operators right before the rows are chosen", frees="device")
def rows_left_out(trace: Trace, *, times: float = 4.0, share: float = 0.05) -> Iterator[Finding]:
    """Every row of a tensor is computed, and few of them are read.

    Sees: elementwise operators on a tensor right before some of its rows are chosen (`x[rows]`, `index_select`), at
    most a fourth of them by the shape of what reads them next, in 5% of the window or more. Needs recorded shapes.

    Costs: elementwise work gives the same on the chosen rows alone. At stake is the part of the rows that isn't read,
    with its backward pass.

    Fix: choose the rows first, and compute on them.

    Known problems: tensors are known by their shapes; a result that is read elsewhere, too, is needed whole.
    """
    program, window = trace.derived(forward_pass), trace.derived(steady_window)
    found: dict[int, float] = {}  # by row: the part of its work that isn't needed
    sizes: list[tuple[int, int]] = []
    for i in np.flatnonzero(trace.events.are(READS_ROWS, program.rows)).tolist():
        kept = _rows_read(program, i)
        if not kept or kept * times > program.shapes[i][0][0]:
            continue
        before = _elementwise_before(trace, program, i)
        if before:
            sizes.append((program.shapes[i][0][0], kept))
            found |= {int(program.rows[k]): 1 - kept / program.shapes[i][0][0] for k in before}
    rows = np.array(sorted(found), np.int32)
    when = work_of(trace, np.concatenate((rows, backward_of(trace, rows))))
    part = window.share(when)
    if not len(rows) or part < share:
        return
    (count, kept) = max(set(sizes), key=sizes.count)
    seen = evidence(trace, rows)
    line = own_frame(seen[0].stack)
    yield Finding(
        title=f"{count:,} rows are computed, of which {kept:,} are read: {percent(part)} of the time",
        confidence="medium",
        time_us=when.total / 1000 * max(found.values()),
        stretches=when,
        window=window,
        evidence=seen,
        cause="Elementwise operators work on the whole tensor before some of its rows are chosen."
        + (f" They are called in {line}." if line else ""),
        fix="Choose the rows first, and compute on them: f(x[rows]) instead of f(x)[rows].",
    )


def _rows_read(program: ForwardPass, i: int) -> int:
    """How many rows are chosen, by what reads them; 0 where the shapes don't tell."""
    if not program.shapes[i] or len(program.shapes[i][0]) < 2:
        return 0
    count, *rest = program.shapes[i][0]
    following = (shape for taken in program.shapes[i + 1 : i + 1 + AFTER] for shape in taken)
    sizes = [shape[0] for shape in following if list(shape[1:]) == rest]
    return sizes[0] if sizes and sizes[0] < count else 0


def _elementwise_before(trace: Trace, program: ForwardPass, i: int) -> list[int]:
    """Operators right before that compute elements of the same shape; small ones in between don't matter."""
    shape, found = program.shapes[i][0], []
    for k in range(i - 1, max(-1, i - 1 - BEFORE), -1):
        taken = program.shapes[k]
        if program.step[k] != program.step[i]:
            break
        if taken and taken[0] == shape and trace.events.are(ELEMENTWISE | SAME_SHAPE, program.rows[k : k + 1])[0]:
            found.append(k)
        elif 10 * max(map(elements, taken), default=0) > elements(shape):
            break
    return found
