"""Indices written out as rows of zeros and a one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import ForwardPass, backward_of, forward_pass, work_of
from torchwhy.trace.derived.shapes import Shape, values
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.meaning.arithmetic import LOGARITHM, MULTIPLY, ONE_HOT, PRODUCT, SOFTMAX_CALL
from torchwhy.trace.meaning.operators import COPY_OR_CONVERSION
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["one_hot"]

AHEAD = 8
"""The rows are read at most this number of operators after the operator that makes them."""


@rule("D30", "one-hot", source="arithmetic by shapes: of each row one column counts", frees="device")
def one_hot(trace: Trace, *, share: float = 0.05, columns: int = 32) -> Iterator[Finding]:
    """Indices are written out as one-hot rows to be multiplied.

    Sees: `aten::one_hot` with 32 columns or more, by the shape that the next operators read, and among the eight
    operators after it a matrix product that reads those rows, or an elementwise product with as many numbers. With
    what lies between, and the backward pass, 5% of the window or more.

    Costs: only one column of each row counts. The others are written, read and multiplied by zero.

    Fix: a product with one-hot rows is a look-up: `F.embedding(index, weight)` or `weight[index]`. Cross entropy takes
    the indices themselves: `F.cross_entropy(scores, index)`; any other sum picks its terms with `gather`.

    Known problems: labels that are smoothed or mixed afterwards need their rows; `F.cross_entropy` takes
    `label_smoothing` and probabilities.
    """
    program, window = trace.derived(forward_pass), trace.derived(steady_window)
    found: dict[bool, list[int]] = {True: [], False: []}
    logarithm = False
    for i in np.flatnonzero(trace.events.are(ONE_HOT, program.rows)).tolist():
        end, product = _reader(trace, program, i, columns)
        if end < 0:
            continue
        first = i
        if not product:
            first, with_log = _entropy(trace, program, i, end)
            logarithm |= with_log
        found[product] += program.rows[first : end + 1].tolist()
    for product, chosen in found.items():
        rows = np.unique(np.array(chosen, np.int32))
        when = work_of(trace, np.concatenate((rows, backward_of(trace, rows))))
        part = window.share(when)
        if not len(rows) or part < share:
            continue
        if product:
            fix = "Look the rows up: F.embedding(index, weight), or weight[index]."
        elif logarithm:
            fix = (
                "F.cross_entropy(scores, index): it takes the indices, computes log_softmax in one pass, and is exact."
            )
        else:
            fix = "Pick the terms with torch.gather(values, -1, index[..., None]); F.cross_entropy takes indices, too."
        yield Finding(
            title=f"Indices are written out as one-hot rows and multiplied: {percent(part)} of the time",
            confidence="medium",
            stretches=when,
            window=window,
            evidence=evidence(trace, rows),
            cause="Each row is zero except for one column, and all of it is written, read and multiplied.",
            fix=fix,
        )


def _reader(trace: Trace, program: ForwardPass, i: int, columns: int) -> tuple[int, bool]:
    """The operator that multiplies one-hot rows, and whether it is a matrix product; -1 without one."""
    index = program.shapes[i][0] if program.shapes[i] else ()
    given = values(trace, int(program.rows[i]))
    count = int(given[1]) if len(given) > 1 and given[1].lstrip("-").isdigit() else -1
    rows: Shape | None = (*index, count) if count > 0 else None
    for k in range(i + 1, min(i + 1 + AHEAD, len(program.rows))):
        taken = program.shapes[k]
        row = program.rows[k : k + 1]
        if rows is None and taken and taken[0][:-1] == index and trace.events.are(COPY_OR_CONVERSION, row)[0]:
            rows = taken[0]
        if rows is None or rows[-1] < columns or rows not in taken:
            continue
        if trace.events.are(PRODUCT, row)[0] and len(taken) > 1 and taken[0] == rows:
            return k, True
        if trace.events.are(MULTIPLY, row)[0] and taken.count(rows) > 1:
            return k, False
    return -1, False


def _entropy(trace: Trace, program: ForwardPass, i: int, end: int) -> tuple[int, bool]:
    """Where the softmax begins whose logarithm is multiplied, and whether there is one: before the rows or after."""
    begin = max(i - AHEAD, 0)
    span = program.rows[begin : end + 1]
    softmax, logarithm = (np.flatnonzero(trace.events.are(m, span)) for m in (SOFTMAX_CALL, LOGARITHM))
    if len(softmax) and len(logarithm) and softmax[-1] < logarithm[-1]:
        return min(i, begin + int(softmax[-1])), True
    return i, False
