"""Pairs of rows that are repeated and joined for one product."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import ForwardPass, backward_of, forward_pass, work_of
from torchwhy.trace.derived.shapes import Shape, elements
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.meaning.arithmetic import PRODUCT
from torchwhy.trace.meaning.operators import REPEATS
from torchwhy.trace.meaning.tensors import CONCATENATE
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["joined_pairs"]

NEAR: Final = 8
"""Rows are joined at most this number of operators after they are repeated, and multiplied at most this number after
that."""


@rule(
    "D46", "joined-pairs", source="operations by shapes: n x n joined rows against n rows of each part", frees="device"
)
def joined_pairs(trace: Trace, *, share: float = 0.05, times: int = 8) -> Iterator[Finding]:
    """Rows are repeated and joined to all pairs, and the pairs multiplied with one matrix.

    Sees: `aten::cat` of two or more tensors, each made in the eight operators before it by `repeat`,
    `repeat_interleave` or `expand` from an eighth of its elements or fewer, and among the next eight operators a
    matrix product that reads the joined rows. These operators take 5% of the window or more, with their backward pass.

    Costs: a product of joined rows is the sum of a product for each part, [a, b] W = a W1 + b W2, and each part has few
    different rows. Here each is written and multiplied once for every pair.

    Fix: split the matrix, multiply each part before it is repeated, and add by broadcasting:
    `(x @ W1)[:, None] + (x @ W2)[None]`.

    Known problems: tensors are known by their shapes.
    """
    program, window = trace.derived(forward_pass), trace.derived(steady_window)
    chosen: set[int] = set()
    for i in np.flatnonzero(trace.events.are(CONCATENATE, program.rows)).tolist():
        parts = program.lists[i][0] if program.lists[i] else []
        repeats, product = _repeats(trace, program, i, parts, times), _product(trace, program, i, parts)
        if len(parts) > 1 and len(repeats) == len(parts) and product >= 0:
            chosen.update(program.rows[[*repeats, i, product]].tolist())
    rows = np.array(sorted(chosen), np.int32)
    when = work_of(trace, np.concatenate((rows, backward_of(trace, rows))))
    part = window.share(when)
    if not len(rows) or part < share:
        return
    yield Finding(
        title=f"Rows are repeated and joined to pairs for one product: {percent(part)} of the time",
        confidence="high",
        stretches=when,
        window=window,
        evidence=evidence(trace, rows),
        cause="A product of joined rows is the sum of a product for each part. Each part has few different rows, which "
        "are written and multiplied again for every pair.",
        fix="Split the matrix, multiply each part before it is repeated, and add by broadcasting: "
        "(x @ W1)[:, None] + (x @ W2)[None].",
        linked=False,
    )


def _repeats(trace: Trace, program: ForwardPass, i: int, parts: list[Shape], times: int) -> list[int]:
    """The operator that repeats rows for each part that is joined; fewer where one is missing."""
    found: list[int] = []
    joins = trace.events.are(CONCATENATE, program.rows)
    before = list(takewhile(lambda k: not joins[k], range(i - 1, max(i - 1 - NEAR, -1), -1)))
    repeating = [k for k in before if trace.events.are(REPEATS, program.rows[k : k + 1])[0] and program.shapes[k]]
    for part in parts:
        for k in repeating:
            source = program.shapes[k][0]
            fits = part and source[-1] == part[-1] and elements(source) * times <= elements(part)
            if fits and k not in found:
                found.append(k)
                break
    return found


def _product(trace: Trace, program: ForwardPass, i: int, parts: list[Shape]) -> int:
    """The product that reads the joined rows; -1 without one."""
    if not parts or () in parts or len({part[:-1] for part in parts}) > 1:
        return -1
    width, count = sum(part[-1] for part in parts), elements(parts[0][:-1])
    for k in range(i + 1, min(i + 1 + NEAR, len(program.rows))):
        taken = program.shapes[k][:1]
        if taken and trace.events.are(PRODUCT, program.rows[k : k + 1])[0] and taken[0][-1] == width:
            return k if elements(taken[0][:-1]) == count else -1
    return -1
