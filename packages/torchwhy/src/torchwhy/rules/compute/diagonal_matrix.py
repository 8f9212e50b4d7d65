"""Diagonal matrices that are factorised and multiplied like dense ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import ForwardPass, backward_of, forward_pass, work_of
from torchwhy.trace.derived.shapes import Shape, values
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.meaning.arithmetic import (
    CHECKING,
    DIAGONAL_STAYS,
    ELEMENTWISE,
    FACTORISATION,
    MAKES_DIAGONAL,
    REDUCING,
    TRIANGULAR_SOLVE,
)
from torchwhy.trace.meaning.kinds import Meaning
from torchwhy.trace.meaning.operators import VIEW
from torchwhy.trace.meaning.tensors import MAKE_TENSOR
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["diagonal_matrix"]

BEFORE: Final = 12
"""None of this number of operators before the one that makes the matrix may read a matrix of its size: the later
operators may read that matrix instead."""

HARMLESS: Final = VIEW | CHECKING | REDUCING
"""Operators that make views and truth values, but no matrix of numbers."""


@rule("D52", "diagonal-matrix", source="operations: n^3 for what takes n", frees="device")
def diagonal_matrix(trace: Trace, *, share: float = 0.05, least: int = 32) -> Iterator[Finding]:
    """A diagonal matrix is written out and factorised.

    Sees: `aten::diag_embed`, or `aten::diag` of a vector, that makes a matrix of 32 rows or more, and a factorisation,
    an inverse or a solution of equations that reads it. Between them are only views, comparisons, products with
    numbers and other operators that can't make another matrix of its size. All that read it, and what is made of it,
    take 5% of the window or more, with their backward pass. Needs recorded shapes.

    Costs: n^2 numbers are written and n^3 operations computed, where n of each do.

    Fix: work with the diagonal: its Cholesky factor is `v.sqrt()`, its inverse `1 / v`, its solution `b / v`. For
    distributions `Independent(Normal(mean, v.sqrt()), 1)` instead of `MultivariateNormal(mean, torch.diag_embed(v))`.

    Known problems: tensors are known by their shapes.
    """
    program, window = trace.derived(forward_pass), trace.derived(steady_window)
    found: set[int] = set()
    for i in np.flatnonzero(trace.events.are(MAKES_DIAGONAL, program.rows)).tolist():
        found.update(_readers(trace, program, i, least))
    rows = program.rows[np.array(sorted(found), np.intp)]
    when = work_of(trace, np.concatenate((rows, backward_of(trace, rows))))
    part = window.share(when)
    if not len(rows) or part < share:
        return
    yield Finding(
        title=f"Diagonal matrices are written out and factorised: {percent(part)} of the time",
        confidence="medium",
        stretches=when,
        window=window,
        evidence=evidence(trace, rows),
        cause="All but the diagonal is zero, and all of it is written, factorised and read.",
        fix="Work with the diagonal v alone: its Cholesky factor is v.sqrt(), its inverse 1 / v. For distributions "
        "Independent(Normal(mean, v.sqrt()), 1) instead of MultivariateNormal(mean, torch.diag_embed(v)).",
        linked=False,
    )


def _readers(trace: Trace, program: ForwardPass, i: int, least: int) -> list[int]:
    """The places of a diagonal matrix's maker and of what reads it or its factors; none where nothing factorises it."""
    taken = program.shapes[i]
    size = taken[0][-1] if taken else 0
    if size < least or len(taken) != 1 or _matrices(taken, size):
        return []
    if any(_matrices(one, size) for one in program.shapes[max(i - BEFORE, 0) : i]):
        return []
    found, factorised = [i], False
    for k in range(i + 1, len(program.rows)):
        taken = program.shapes[k]
        matrices = _matrices(taken, size)
        factor = matrices == 1 and _is(trace, program, k, FACTORISATION)
        if program.step[k] != program.step[i] or not (factor or _keeps(trace, program, k, matrices, size)):
            break
        factorised |= factor
        if matrices:
            found.append(k)
    return found if factorised else []


def _keeps(trace: Trace, program: ForwardPass, k: int, matrices: int, size: int) -> bool:
    """Whether all matrices of a size are diagonal after an operator if they were before it."""
    if _is(trace, program, k, HARMLESS):
        return True
    if _is(trace, program, k, MAKE_TENSOR):
        given = "".join(values(trace, int(program.rows[k]))[:1])  # of a new tensor the sizes, of `eye` the one
        known = bool(program.shapes[k] or given)
        return known and not matrices and given != str(size) and f"{size}, {size}" not in given
    if matrices:
        return matrices == 1 and _is(trace, program, k, DIAGONAL_STAYS | TRIANGULAR_SOLVE)
    return _is(trace, program, k, ELEMENTWISE) and not _is_square(np.broadcast_shapes(*program.shapes[k]), size)


def _is(trace: Trace, program: ForwardPass, k: int, meaning: Meaning) -> bool:
    return bool(trace.events.are(meaning, program.rows[k : k + 1])[0])


def _matrices(taken: list[Shape], size: int) -> int:
    """How many matrices of a size an operator takes."""
    return sum(_is_square(shape, size) for shape in taken)


def _is_square(shape: Shape, size: int) -> bool:
    return shape[-2:] == (size, size)
