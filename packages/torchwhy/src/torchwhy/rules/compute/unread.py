"""Results of which a program reads a small part."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import ForwardPass, backward_of, forward_pass, product_shape, work_of
from torchwhy.trace.derived.shapes import Shape, elements, values
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.meaning.arithmetic import DROPOUT, ELEMENTWISE, ROWWISE, SORT
from torchwhy.trace.meaning.operators import DIAGONAL, SLICE
from torchwhy.trace.model.events import parse_list
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["unread_result"]

AHEAD: Final = 6
"""A slice is read at most this number of operators after it is taken."""


@dataclass(frozen=True)
class _Result:
    """A result of which a part is read: the operators that compute it, as rows, and the part (0 to 1)."""

    rows: list[int]
    part: float
    sorts: bool
    diagonal: bool


@rule("D22", "unread-result", source="arithmetic by shapes: what is computed, and what is read of it", frees="device")
def unread_result(trace: Trace, *, read: float = 0.25, share: float = 0.08) -> Iterator[Finding]:
    """Most of a result is thrown away.

    Sees: a matrix product or a sort (with elementwise operators and norms of its result's shape after it) whose result
    is read by `aten::select`, `slice`, `narrow` or `diagonal` alone, 25% of it or less together, by the shapes of what
    is read; a slice along the dimension of a softmax or a norm in between needs all of it. Its time, with that of its
    backward pass, is 8% of the window or more.

    Costs: the unread part is computed, written, and in training differentiated.

    Fix: take the part of the input first: the last position before the head, the rows of interest before the product.
    The diagonal of a product is a sum of elementwise products. In place of a sort `topk`, or `kthvalue`, `min`, `max`.

    Known problems: tensors are known by their shapes. Another tensor of the same shape that is read later hides the
    finding, and one of the slice's shape may be taken for it.
    """
    window = trace.derived(steady_window)
    found = _results(trace, trace.derived(forward_pass), read)
    for sorts, diagonal in ((False, False), (False, True), (True, False)):
        chosen = [one for one in found if (one.sorts, one.diagonal) == (sorts, diagonal)]
        rows = np.array([row for one in chosen for row in one.rows], np.int32)
        mine = np.concatenate((rows, backward_of(trace, rows)))
        when = work_of(trace, mine)
        if not len(rows) or window.share(when) < share:
            continue
        spent = trace.events.dur[[one.rows[0] for one in chosen]]
        part = float(np.average([one.part for one in chosen], weights=spent))
        first = chosen[0].rows[0]
        name = trace.name(first)
        yield Finding(
            title=f"{name} takes {percent(window.share(when))} of the time, and {percent(part)} of its results is read",
            confidence="medium",
            time_us=when.total / 1000 * (1 - part),
            stretches=when,
            window=window,
            evidence=evidence(trace, rows),
            cause="Only the diagonal of the result is read, and the rest is not used."
            if diagonal
            else "Only slices of the result are read, and the rest is not used.",
            fix="Use topk, which doesn't sort the rest; kthvalue, min or max for one value."
            if sorts
            else "Compute the diagonal alone: (a * b).sum(-1) is the diagonal of a @ b.T."
            if diagonal
            else "Select before computing: take the positions or rows that are read (such as the last position) from "
            "the input, and compute with these alone.",
        )


def _results(trace: Trace, program: ForwardPass, read: float) -> list[_Result]:
    events, rows = trace.events, program.rows
    sorts, slices, rowwise = (events.are(meaning, rows) for meaning in (SORT, SLICE | DIAGONAL, ROWWISE))
    whole_rows = rowwise & ~events.are(ELEMENTWISE | DROPOUT, rows)
    if not slices.any():
        return []
    diagonals = events.are(DIAGONAL, rows)
    readers: defaultdict[tuple[int, Shape], list[int]] = defaultdict(list)
    makers: defaultdict[tuple[int, Shape], list[int]] = defaultdict(list)
    for i, taken in enumerate(program.shapes):
        step = int(program.step[i])
        for shape in {*taken, *(shape for each in program.lists[i] for shape in each)}:
            readers[step, shape].append(i)
        made = taken[0] if sorts[i] and taken else product_shape(trace, int(rows[i]), taken)
        if made:
            makers[step, made].append(i)
    found = []
    known: dict[Shape, float] = {}
    for (step, shape), places in makers.items():
        reads = readers[step, shape]
        for i, until in zip(places, [*places[1:], len(rows)], strict=True):
            mine = reads[bisect_right(reads, i) : bisect_right(reads, until)]
            chain = [i]
            while mine and rowwise[mine[0]]:
                chain.append(mine.pop(0))
            if not mine or not slices[mine].all():
                continue
            joined = {dim for k in chain if whole_rows[k] for dim in _joined(trace, int(rows[k]), len(shape))}
            if joined and diagonals[mine].any():
                continue
            part = sum(_diagonal_part(shape) if diagonals[at] else _part(program, at, shape, joined) for at in mine)
            if mine[-1] + AHEAD >= len(rows):  # what reads the slice comes after the recording
                part = min(part, known.get(shape, part))
            known[shape] = part
            if 0 < part <= read:
                found.append(_Result([int(rows[k]) for k in chain], part, bool(sorts[i]), bool(diagonals[mine].all())))
    return found


def _diagonal_part(shape: Shape) -> float:
    """What part of matrices their diagonal is."""
    return 1 / max(shape[-2:]) if len(shape) > 1 else 1.0


def _joined(trace: Trace, row: int, dims: int) -> set[int]:
    """The dimensions along which a softmax or a norm needs all elements of a tensor for each of its results."""
    given = values(trace, row)
    text = given[1] if len(given) > 1 else ""
    if text.startswith("["):  # a norm's shape
        return set(range(max(dims - len(parse_list(text)), 0), dims))
    return {int(text) % dims if text.lstrip("-").isdecimal() else dims - 1}


def _part(program: ForwardPass, at: int, shape: Shape, joined: set[int]) -> float:
    """What part of a tensor a slice is, by the shape of what is read next: 1 where none fits.

    All of it is needed where the slice may be cut along dimensions whose elements were joined.
    """
    for taken in program.shapes[at + 1 : at + 1 + AHEAD]:
        for other in taken:
            if len(other) == len(shape):
                cut = {k for k, (x, y) in enumerate(zip(shape, other, strict=True)) if x != y}
                fits = len(cut) == 1
            else:
                cut = {k for k in range(len(shape)) if shape[:k] + shape[k + 1 :] == other}
                fits = len(cut) > 0
            if fits and elements(other) < elements(shape):
                return 1.0 if cut & joined else elements(other) / elements(shape)
    return 1.0
