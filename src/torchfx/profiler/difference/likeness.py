"""Whether two recordings are of one program: by the operators that say what is computed, and how often each comes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from torchfx.profiler.difference.costs import Side, canonical_ids
from torchfx.profiler.trace.derived.compiled import compiled_of
from torchfx.profiler.trace.model.intervals import Intervals
from torchfx.profiler.trace.model.kinds import Kind

__all__ = ["ENOUGH", "Likeness", "likeness_of", "trains"]

ENOUGH: Final = 0.5
"""From this likeness on two recordings are taken to be of one program.

Measured on public traces: recordings of one program on two vendors, with two numbers of loader workers, of two versions
of a model's training, reach 0.7 to 1; recordings of different programs at most 0.4.
"""

COMMON: Final = re.compile(
    r"aten::(empty|zeros|ones|full|fill|zero|copy|to|_to_copy|clone|contiguous|detach|view|_unsafe_view|reshape|resize"
    r"|as_strided|t|transpose|permute|expand|select|slice|narrow|squeeze|unsqueeze|flatten|item|_local_scalar_dense"
    r"|is_nonzero|add|mul|set|lift_fresh|empty_strided|empty_like|zeros_like|ones_like|result_type|alias)_?$"
)
"""Operators that every program calls, whatever it computes."""

BACKWARD: Final = re.compile(r"autograd::engine::evaluate_function|\w+Backward\d*$")

FUSED: Final = re.compile(r"triton_[a-z]+_fused_(\w+?)(_\d+)?$")


@dataclass(frozen=True)
class Likeness:
    """How alike two programs are.

    Attributes:
        share: the part of operators in common, from 0 to 1; None where the recordings have too few names to tell.
        what: what was compared: "operators", "kernels", or "names" of anything.
    """

    share: float | None
    what: str

    @property
    def same_program(self) -> bool:
        """Whether they are taken to be of one program; what can't be told counts as yes."""
        return self.share is None or self.share >= ENOUGH

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        share = None if self.share is None else round(self.share, 4)
        return {"share": share, "compared": self.what, "same_program": self.same_program}


def trains(side: Side) -> bool:
    """Whether a backward pass runs in the steps."""
    return any(BACKWARD.match(name) for name in side.calls.names)


def likeness_of(a: Side, b: Side) -> Likeness:
    """Compare what both sides compute in a step.

    Two measures, of which the larger counts: how far the shares of all calls agree (which survives a larger or smaller
    step), and which part of the smaller side's calls comes exactly as often on the other (which survives an optimizer
    or an attention written another way). Where one side is compiled, also whether its names are among the other's.
    """
    first, second = _operators(a), _operators(b)
    if min(len(first), len(second)) < 3:
        first, second = _operators(a, common=True), _operators(b, common=True)
    if first and second:
        found = max(_shares_agree(first, second), _come_as_often(first, second))
        if bool(a.trace.derived(compiled_of)) != bool(b.trace.derived(compiled_of)):
            found = max(found, _names_among(a, b, first, second))
        return Likeness(found, "operators")
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
    ids, names = canonical_ids(trace)
    rows = side.host[trace.events.kind[side.host] == Kind.OPERATOR]
    compiling = trace.derived(compiled_of).compiling
    optimizer = trace.events.find(r"Optimizer\.", Kind.ANNOTATION)
    aside = compiling | Intervals.union(trace.events.ts[optimizer], trace.events.end[optimizer])
    rows = rows[aside.overlap(trace.events.ts[rows], trace.events.ts[rows] + 1) == 0]
    count = np.bincount(ids[trace.events.name[rows]], minlength=len(names)) / len(side.rounds)
    return {
        names[i]: float(count[i])
        for i in np.flatnonzero(count).tolist()
        if "::" in names[i]
        and not names[i].startswith(("autograd::", "torch::autograd"))
        and (common or not COMMON.match(names[i]))
    }


def _shares_agree(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    """Jaccard's index of the calls, each as a share of all."""
    total = sum(a.values()), sum(b.values())
    shares = [(a.get(name, 0) / total[0], b.get(name, 0) / total[1]) for name in {*a, *b}]
    return sum(map(min, shares)) / sum(map(max, shares))


def _come_as_often(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    """Of the calls of the smaller side, those of operators that come as often on the other side, to 5%."""
    if min(len(a), len(b)) < 3:
        return 0.0
    same = [(a[name], b[name]) for name in a if name in b]
    agree = sum(min(pair) for pair in same if max(pair) <= 1.05 * min(pair))
    return min(agree / min(sum(a.values()), sum(b.values())), 1.0)


def _names_among(a: Side, b: Side, first: Mapping[str, float], second: Mapping[str, float]) -> float:
    """Of the names the compiled side has outside and inside fused kernels, those the other has too."""
    compiled, eager = (set(first), set(second)) if a.trace.derived(compiled_of) else (set(second), set(first))
    side = a if a.trace.derived(compiled_of) else b
    words = {word.removeprefix("aten::").strip("_") for word in eager}
    inside = {name for kernel in side.kernels.names if (match := FUSED.match(kernel)) for name in _words(match[1])}
    known = [name in eager for name in compiled] + [name in words for name in inside]
    return sum(known) / len(known) if len(known) >= 3 else 0.0


def _words(text: str) -> list[str]:
    """Names in a fused kernel's: `add_mul_relu`; those with underscores of their own stay together where known."""
    return [word for word in text.split("_") if len(word) > 1 and not word.isdigit()]
