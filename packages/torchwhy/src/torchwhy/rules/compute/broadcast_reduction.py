"""All pairs of rows by broadcasting, and a sum over them: a product or a distance written out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import ForwardPass, backward_of, forward_pass, work_of
from torchwhy.trace.derived.shapes import Shape, elements
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.meaning.arithmetic import ELEMENTWISE, MULTIPLY, REDUCING, SUBTRACT
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["pairs_written_out"]

AHEAD: Final = 6
"""Operators from the broadcast to the sum, at most."""


@rule("D25", "pairs-written-out", source="arithmetic by shapes: broadcast operators with a sum after", frees="device")
def pairs_written_out(trace: Trace, *, larger: float = 8.0, share: float = 0.05) -> Iterator[Finding]:
    """Differences or products of all pairs are written to memory, to be summed.

    Sees: `aten::sub` or `mul` of two tensors that are broadcast against each other, such as [n, 1, d] and [1, m, d],
    with a result of 8 times their elements or more; and among the next six operators a sum, mean or norm of it, with
    nothing but elementwise operators of its shape in between (after `mul` nothing). Their time, with that of the
    backward pass, is 5% of the window or more.

    Costs: n m d numbers are written and read by each of the operators; the result has n m.

    Fix: `torch.cdist(x, y)` for distances of all pairs; for sums of products `torch.einsum` or a matrix product.

    Known problems: other sums of differences than norms have no such operator; the advice is for distances.
    """
    program, window = trace.derived(forward_pass), trace.derived(steady_window)
    events = trace.events
    for meaning, differences in ((SUBTRACT, True), (MULTIPLY, False)):
        chains = (
            _chain(trace, program, i, larger, elementwise=differences)
            for i in np.flatnonzero(events.are(meaning, program.rows)).tolist()
        )
        rows = np.array([int(program.rows[k]) for chain in chains for k in chain], np.int32)
        when = work_of(trace, np.concatenate((rows, backward_of(trace, rows))))
        part = window.share(when)
        if not len(rows) or part < share:
            continue
        yield Finding(
            title=f"{'Differences' if differences else 'Products'} of all pairs are written out and summed: "
            f"{percent(part)} of the time",
            confidence="medium",
            stretches=when,
            window=window,
            evidence=evidence(trace, rows),
            cause="Two tensors are broadcast against each other. Each operator up to the sum writes or reads a tensor "
            "many times as large as its inputs and the result.",
            fix="torch.cdist(x, y) computes distances of all pairs without their differences; for squared distances, "
            "x.square().sum(1)[:, None] - 2 * x @ y.T + y.square().sum(1)."
            if differences
            else "A matrix product (x @ y.T, torch.einsum) computes the sums without the products of all pairs.",
        )


def _chain(trace: Trace, program: ForwardPass, i: int, larger: float, *, elementwise: bool) -> list[int]:
    """From a broadcast operator to the sum of its result: positions; none where there is no such sum."""
    pair = _pairs(program.shapes[i], larger)
    if pair is None:
        return []
    found = [i]
    for k in range(i + 1, min(i + 1 + AHEAD, len(program.rows))):
        if pair not in program.shapes[k]:
            continue
        row = program.rows[k : k + 1]
        found.append(k)
        if trace.events.are(REDUCING, row)[0]:
            following = {shape for taken in program.shapes[k + 1 : k + 1 + AHEAD] for shape in taken}
            return found if following & _sums(program.shapes[i]) else []
        if not (elementwise and trace.events.are(ELEMENTWISE, row)[0]):
            return []
    return []


def _sums(taken: list[Shape]) -> set[Shape]:
    """The shapes of sums over a dimension that both tensors have, with and without it."""
    whole = tuple(map(max, *taken[:2]))
    shared = [k for k, (x, y) in enumerate(zip(*taken[:2], strict=True)) if x == y > 1]
    return {(*whole[:k], *one, *whole[k + 1 :]) for k in shared for one in ((), (1,))}


def _pairs(taken: list[Shape], larger: float) -> Shape | None:
    """The shape of all pairs; None where two tensors don't make any."""
    if len(taken) < 2 or len(taken[0]) != len(taken[1]):
        return None
    a, b = taken[:2]
    first = any(x == 1 < y for x, y in zip(a, b, strict=True))
    second = any(y == 1 < x for x, y in zip(a, b, strict=True))
    shared = any(x == y > 1 for x, y in zip(a, b, strict=True))
    if not (first and second and shared) or any(x != y and 1 not in (x, y) for x, y in zip(a, b, strict=True)):
        return None
    whole = tuple(max(x, y) for x, y in zip(a, b, strict=True))
    return whole if elements(whole) >= larger * (elements(a) + elements(b)) else None
