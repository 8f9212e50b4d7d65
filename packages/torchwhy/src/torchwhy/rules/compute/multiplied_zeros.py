"""Products with matrices that are nearly all zeros."""

from __future__ import annotations

from collections.abc import Iterator

from torchwhy.finding import Finding
from torchwhy.rules.compute.tried import lines_of, place_of
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.contents import Trial, calls_of, contents, parts_of
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["multiplied_zeros"]


@rule(
    "D77", "multiplied-zeros", source="matrices' zeros counted, and products run again with a sparse one", frees="host"
)
def multiplied_zeros(trace: Trace, *, runs: int = 2, share: float = 0.05) -> Iterator[Finding]:
    """Matrices are multiplied that are nearly all zeros.

    Sees: in steps after the recorded ones, `torchwhy profile` counts the zeros of the matrices that `mm`, `addmm` and
    `matmul` multiply. Where 95% or more of 262,144 numbers or more are zeros, it multiplies a part of the matrix in the
    sparse layout CSR and in the dense one. Products are named that were compared twice or more and took half of the
    time or less; a matrix that changes from call to call is made sparse each time. That saves 5% of the window or more.

    Costs: each zero is read and multiplied. At stake is the time that the sparse products saved.

    Fix: keep the matrix sparse from the beginning: `torch.sparse_coo_tensor(indices, values, size).to_sparse_csr()`, or
    `matrix.to_sparse_csr()` once, before the loop. Of one-hot rows an index does the same, of edges `index_add`.

    Known problems: only the processor's products of two matrices are tried, not batches of them. Gradients for the
    sparse matrix itself need other operators. A matrix that changes in place and keeps its number of zeros looks
    constant.
    """
    window = trace.derived(steady_window)
    sparse = [one for one in trace.derived(contents).trials if _is_sparse(one, runs)]
    saved = [(one, 1 - _sparse_us(one) / one.dense_us) for one in sparse]
    rows, when, saved_us = calls_of(trace, parts_of(trace, saved))
    part = saved_us * 1000 / max(window.end - window.start, 1)
    if not sparse or part < share:
        return
    sparse.sort(key=lambda one: _sparse_us(one) - one.dense_us)
    zeros, (height, width) = min(one.zeros for one in sparse), sparse[0].matrix
    yield Finding(
        title=f"Of a matrix that is multiplied, {_most(zeros)} are zeros: {percent(part)} of the time",
        confidence="high",
        time_us=saved_us,
        stretches=when,
        window=window,
        evidence=(*lines_of(trace, sparse), *evidence(trace, rows)),
        cause=f"The zeros of the matrix of {height:,} x {width:,} were counted, and products with it were run again in "
        f"the sparse layout CSR: they took {percent(_sparse_us(sparse[0]) / sparse[0].dense_us)} of the time."
        f"{place_of(trace, sparse)}",
        fix="Keep the matrix sparse from the beginning: torch.sparse_coo_tensor(indices, values, size).to_sparse_csr() "
        "is multiplied in the same way. Where its rows select others, index instead: x[index].",
    )


def _is_sparse(one: Trial, runs: int) -> bool:
    tried = one.products >= runs and one.dense_us > 0 and len(one.matrix) == 2
    return tried and 0 <= _sparse_us(one) <= one.dense_us / 2


def _sparse_us(one: Trial) -> float:
    """How long the products took with a sparse matrix; a matrix that changes is made sparse for each."""
    return one.sparse_us + (one.layout_us if one.changing else 0.0)


def _most(part: float) -> str:
    """A part that is nearly all, not rounded to all of it."""
    return f"{100 * min(part, 0.9999):.2f}%" if part > 0.99 else percent(part)
