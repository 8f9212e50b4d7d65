"""Inverses that are made for one product."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import backward_of, forward_pass, work_of
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.meaning.arithmetic import INVERSE, PRODUCT
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["inverse_for_product"]

AHEAD = 6
"""The product comes at most this number of operators after the inverse."""


@rule(
    "D29", "inverse-for-product", source="operations: 2 n^3 for an inverse, 2/3 n^3 for a factorisation", frees="device"
)
def inverse_for_product(trace: Trace, *, share: float = 0.05, least: int = 32) -> Iterator[Finding]:
    """A matrix is inverted to be multiplied with few columns.

    Sees: `aten::linalg_inv` (or `pinverse`) of a matrix of 32 rows or more, and among the next six operators a product
    whose first matrix has its shape and whose other has at most half as many columns. The inverses take 5% of the
    window or more, with their backward pass.

    Costs: an inverse takes three times the operations of a factorisation, and loses digits where the matrix is nearly
    singular. Its backward pass multiplies whole matrices, where solving takes a few columns again. At stake are all of
    the backward pass and five sixths of the inverse: Cholesky's factorisation takes a third of n^3 operations.

    Fix: `torch.linalg.solve(A, b)`; for symmetric positive definite matrices `torch.cholesky_solve(b,
    torch.linalg.cholesky(A))`.

    Known problems: an inverse that is used again, with many other vectors, may be worth it. Tensors are known by their
    shapes.
    """
    program, window, events = trace.derived(forward_pass), trace.derived(steady_window), trace.events
    products = events.are(PRODUCT, program.rows)
    found = []
    for i in np.flatnonzero(events.are(INVERSE, program.rows)).tolist():
        square = program.shapes[i][0] if program.shapes[i] else ()
        if len(square) < 2 or square[-1] < least:
            continue
        for k in range(i + 1, min(i + 1 + AHEAD, len(products))):
            taken = program.shapes[k]
            if products[k] and len(taken) >= 2 and taken[0] == square:
                columns = taken[1][-1] if len(taken[1]) > 1 else 1
                if 2 * columns <= square[-1]:
                    found.append(int(program.rows[i]))
                break
    rows = np.array(found, np.int32)
    forward = work_of(trace, rows)
    when = work_of(trace, np.concatenate((rows, backward_of(trace, rows)))) | forward
    part = window.share(when)
    if not len(rows) or part < share:
        return
    yield Finding(
        title=f"Matrices are inverted to be multiplied with few columns: {percent(part)} of the time",
        confidence="medium",
        time_us=(when.total - forward.total / 6) / 1000,
        stretches=when,
        window=window,
        evidence=evidence(trace, rows),
        cause="An inverse takes three times the operations of the factorisation that solves the equations.",
        fix="torch.linalg.solve(A, b) instead of the inverse and its product; torch.cholesky_solve(b, "
        "torch.linalg.cholesky(A)) where A is symmetric and positive definite.",
    )
