"""Whether two recordings are of one program: by what it computes and how often, and by what it calls its own parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from torchwhy.difference.compiled import is_compiled
from torchwhy.difference.costs import Side, stable_ids
from torchwhy.difference.labels import labels_of
from torchwhy.trace.derived.compiled import compiled_of
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.annotations import OPTIMIZER
from torchwhy.trace.meaning.kernels import decode
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.operators import BACKWARD
from torchwhy.trace.meaning.programs import AUTOGRAD, EVERYWHERE, PRODUCTS, kin
from torchwhy.trace.meaning.tensors import tensor_sizes
from torchwhy.trace.model.intervals import Intervals

__all__ = ["ENOUGH", "Likeness", "likeness_of", "trains"]

ENOUGH: Final = 0.5
"""From this likeness on two recordings are taken to be of one program.

Measured on public traces: recordings of one program on two vendors, with two numbers of loader workers, of two versions
of a model's training, reach 0.7 to 1; recordings of different programs at most 0.4.
"""

FEW: Final = 3
"""Shares of fewer names than this say nothing."""

SMALL: Final = 10
"""A step of fewer distinct operators may be one function in two versions, fused and not: they share no operator then.

Models have more: those of public traces 10 to 60.
"""


@dataclass(frozen=True)
class Likeness:
    """How alike two programs are.

    Attributes:
        share: the part in common of what was compared, from 0 to 1; None if the recordings have too few
            names.
        what: what was compared: "operators", "products" (matrix products, convolutions, attention: where one side is
            compiled), "labels" (the program's own, and classes of its modules), "kernels", or "names" of anything.
        operators: the part of operators in common; None where there are too few.
        labels: those both have.
    """

    share: float | None
    what: str
    operators: float | None = None
    labels: tuple[str, ...] = ()

    @property
    def same_program(self) -> bool:
        """Whether they are taken to be of one program; an undecided case counts as yes."""
        return self.share is None or self.share >= ENOUGH


def trains(side: Side) -> bool:
    """Whether a backward pass runs in the steps."""
    return any(BACKWARD.names(name) for name in side.calls.names)


def likeness_of(a: Side, b: Side) -> Likeness:
    """Compare what both sides compute in a step.

    Two measures, of which the larger counts: how far the shares of all calls agree (which survives a larger or smaller
    step), and which part of the smaller side's calls comes exactly as often on the other (which survives an optimizer
    or an attention written another way). Where one side is compiled, also whether its names are among the other's, and
    whether both do the same products. Where operators disagree, what the program calls its own parts decides: fusing
    changes the operators, not the labels. Without such labels a step of few operators may be one function, written in
    two ways: that is undecided, unless both have labels, or sizes of tensors, and none in common.
    """
    measured = _by_operators(a, b)
    shared, share = _labels_agree(a, b)
    if measured.same_program:
        return replace(measured, labels=shared)
    if share >= ENOUGH:
        return Likeness(share, "labels", measured.operators, shared)
    if measured.what == "operators" and _may_be_one_function(a, b):
        return replace(measured, share=None, labels=shared)
    return replace(measured, labels=shared)


def _may_be_one_function(a: Side, b: Side) -> bool:
    if min(len(_operators(side)) for side in (a, b)) >= SMALL or is_compiled(a) != is_compiled(b):
        return False
    if labels_of(a.trace) and labels_of(b.trace) and not _labels_agree(a, b)[0]:
        return False
    sizes = [_sizes(side) for side in (a, b)]
    return not all(sizes) or not sizes[0].isdisjoint(sizes[1])


def _sizes(side: Side) -> set[str]:
    """The sizes of the tensors, of one dimension and more, that operators get."""
    texts = side.trace.events.texts
    found = np.unique(side.trace.events.text_ids("Input Dims", _working(side)))
    return {size for i in found[found >= 0].tolist() for size in tensor_sizes(texts[i])}


def _by_operators(a: Side, b: Side) -> Likeness:
    first, second = _operators(a), _operators(b)
    if min(len(first), len(second)) < FEW:
        first, second = _operators(a, common=True), _operators(b, common=True)
    one_compiled = is_compiled(a) != is_compiled(b)
    known, among = (_names_among(b, a) if is_compiled(b) else _names_among(a, b)) if one_compiled else (0, 0.0)
    if first and second:
        found = max(_shares_agree(first, second), _come_as_often(first, second))
        likeness = Likeness(found, "operators", found)
        if found < ENOUGH and one_compiled:
            products = [_products(side) for side in (a, b)]
            if products[0] == products[1] != {} and among >= ENOUGH:
                return replace(likeness, share=1.0, what="products")
            if known < FEW and not any(products):
                return replace(likeness, share=None)
            if known >= FEW and (not any(products) or _shares_of_counts(*products) >= ENOUGH):
                return replace(likeness, share=max(found, among))
        return likeness
    if one_compiled:  # all operators of a side are in fused kernels, which eager code doesn't have
        return Likeness(among if known >= FEW else None, "operators")
    if a.trace.info.vendor == b.trace.info.vendor or not (a.kernels.names and b.kernels.names):
        if a.kernels.names and b.kernels.names:
            return Likeness(_shares_agree(a.kernels.per_step, b.kernels.per_step), "kernels")
        names = [{*side.calls.names, *side.kernels.names} for side in (a, b)]
        if all(names) and not names[0] & names[1]:
            return Likeness(0.0, "names")
    return Likeness(None, "operators")


def _operators(side: Side, *, common: bool = False) -> dict[str, float]:
    """Calls per step of operators, without those of an optimizer and those made while something was being compiled."""
    trace = side.trace
    ids, names = stable_ids(trace)
    rows = _working(side)
    count = np.bincount(ids[trace.events.name[rows]], minlength=len(names)) / len(side.rounds)
    return {
        names[i]: float(count[i])
        for i in np.flatnonzero(count).tolist()
        if "::" in names[i] and not AUTOGRAD.names(names[i]) and (common or not EVERYWHERE.names(names[i]))
    }


def _working(side: Side) -> Int32:
    trace = side.trace
    rows = side.host[trace.events.kind[side.host] == Kind.OPERATOR]
    optimizer = trace.events.of(OPTIMIZER)
    aside = trace.derived(compiled_of).compiling | Intervals.union(
        trace.events.ts[optimizer], trace.events.end[optimizer]
    )
    found: Int32 = rows[aside.overlap(trace.events.ts[rows], trace.events.ts[rows] + 1) == 0]
    return found


def _products(side: Side) -> dict[str, int]:
    """How many products of each family a step does: of calls inside each other the innermost one."""
    events, calls = side.trace.events, side.trace.calls
    rows, found = _working(side), {}
    for family, meaning in PRODUCTS.items():
        mine = rows[events.are(meaning, rows)]
        wanted = np.zeros(len(events), np.bool_)
        wanted[mine] = True
        above = calls.parent[mine]
        around = calls.nearest(wanted)[above[above >= 0]]
        count = round((len(mine) - len(np.intersect1d(mine, around))) / len(side.rounds))
        if count:
            found[family] = count
    return found


def _shares_of_counts(a: Mapping[str, int], b: Mapping[str, int]) -> float:
    """The part of both sides' products that the other has too."""
    pairs = [(a.get(family, 0), b.get(family, 0)) for family in {*a, *b}]
    return sum(map(min, pairs)) / sum(map(max, pairs))


def _labels_agree(a: Side, b: Side) -> tuple[tuple[str, ...], float]:
    """The labels and classes of modules both have, and which part of all they are."""
    first, second = labels_of(a.trace), labels_of(b.trace)
    both = tuple(name for name in first if name in second)
    return both, len(both) / max(len({*first, *second}), 1)


def _shares_agree(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    """Jaccard's index of the calls, each as a share of all."""
    total = sum(a.values()), sum(b.values())
    shares = [(a.get(name, 0) / total[0], b.get(name, 0) / total[1]) for name in {*a, *b}]
    return sum(map(min, shares)) / sum(map(max, shares))


def _come_as_often(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    """The share of the smaller side's calls whose operators come as often on the other side, to 5%."""
    if min(len(a), len(b)) < 3:
        return 0.0
    same = [(a[name], b[name]) for name in a if name in b]
    agree = sum(min(pair) for pair in same if max(pair) <= 1.05 * min(pair))
    return min(agree / min(sum(a.values()), sum(b.values())), 1.0)


def _names_among(compiled: Side, eager: Side) -> tuple[int, float]:
    """How many names the compiled side has outside and inside fused kernels, and which part the other has too."""
    known = {kin(name) for name in _operators(eager, common=True)}
    own = {kin(name) for name in _operators(compiled)}
    own |= {kin(name) for kernel in compiled.kernels.names for name in decode(kernel).fused}
    return len(own), sum(name in known for name in own) / len(own) if own else 0.0
