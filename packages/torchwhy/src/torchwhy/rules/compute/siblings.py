"""The same computation several times, one result joined to the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import ForwardPass, backward_of, forward_pass, product_shape
from torchwhy.trace.derived.idle import at_stake
from torchwhy.trace.derived.shapes import Shape
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.file.columns import Int32, numbered_together
from torchwhy.trace.meaning.operators import HEAVY, PICK
from torchwhy.trace.meaning.tensors import CONCATENATE
from torchwhy.trace.model.intervals import Intervals
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["one_by_one"]

LONGEST: Final = 100
"""Operators in one round, at most."""


@dataclass(frozen=True)
class _Rounds:
    """Rounds of the same operators, as rows, up to the operator that joins their results."""

    rows: Int32
    count: int
    join: int


@rule("D23", "one-by-one", source="arithmetic by shapes: equal operators whose results are joined", frees="host")
def one_by_one(trace: Trace, *, rounds: int = 4, short_us: float = 100.0, share: float = 0.05) -> Iterator[Finding]:
    """The same small computation is called several times, and the results are joined.

    Sees: `aten::cat` or `stack` of four or more tensors of one shape, and as many rounds of the same operators with the
    same shapes directly before it, a matrix product, convolution or attention among them. Its operators take less than
    100 us (median), and all together, with their backward pass, 5% of the window or more; on a GPU only the part during
    which the device waits. A round may need the result of the one before where it reads a tensor of that shape first:
    such loops are left out, and so are those over slices of a tensor, which tensor-for-loop names.

    Costs: each round pays the overhead of its calls, in the forward pass, in the backward pass and in the optimizer.

    Fix: join the weights instead of the results. Heads, experts or members of an ensemble that take the same input are
    one wider product, whose result is split with `view`; with different inputs `torch.bmm`, `torch.func.vmap` over
    stacked weights, or a grouped convolution.

    Known problems: the optimizer's part is not counted.
    """
    window, events = trace.derived(steady_window), trace.events
    found = [one for one in _joined(trace, trace.derived(forward_pass)) if one.count >= rounds]
    if not found:
        return
    rows = np.concatenate([one.rows for one in found])
    if float(np.median(events.dur[rows])) > short_us * 1000:
        return
    spans = Intervals.union([events.ts[one.rows[0]] for one in found], [events.end[one.rows[-1]] for one in found])
    when = spans | events.times_of(backward_of(trace, rows))
    part = window.share(at_stake(trace, when))
    if part < share:
        return
    most = max(one.count for one in found)
    joins = np.array([one.join for one in found], np.int32)
    saved = 1 - float(np.mean([1 / one.count for one in found]))
    yield Finding(
        title=f"The same operators run one by one, {most} times before their results are joined: {percent(part)} of "
        "the time",
        confidence="medium",
        time_us=when.clip(window.start, window.end).total / 1000 * saved,
        stretches=when,
        window=window,
        evidence=(*evidence(trace, joins, limit=1), *evidence(trace, rows, limit=4)),
        cause="A loop calls modules or operators with equal shapes, such as the heads of a layer, and joins their "
        "results.",
        fix="Compute all heads or branches at once: one wider product where they take one input, its result split "
        "with view; torch.bmm or torch.func.vmap over stacked weights where each has another input.",
    )


def _joined(trace: Trace, program: ForwardPass) -> Iterator[_Rounds]:
    events, rows = trace.events, program.rows
    joins = np.flatnonzero(events.are(CONCATENATE, rows)).tolist()
    if not joins:
        return
    _, key = numbered_together(events.name[rows], events.text_ids("Input Dims", rows))
    heavy, picks = (np.concatenate(([0], np.cumsum(events.are(meaning, rows)))) for meaning in (HEAVY, PICK))
    for i in joins:
        lists = program.lists[i]
        if not lists or len(set(lists[0])) != 1:
            continue
        count, result = len(lists[0]), lists[0][0]
        for period in range(1, min(LONGEST, i // count) + 1 if count > 1 else 1):
            first = i - count * period
            if program.step[first] != program.step[i] or (key[first : i - period] != key[first + period : i]).any():
                continue
            alone = heavy[first + period] > heavy[first] and picks[first + period] == picks[first]
            if alone and not _depends(trace, program, first, period, result):
                yield _Rounds(rows[first:i], count, int(rows[i]))
            break


def _depends(trace: Trace, program: ForwardPass, first: int, period: int, result: Shape) -> bool:
    """Whether a round may need the result of the one before.

    It may if it reads tensors of the result's shape as often as it makes them; the last one it makes is the result.
    """
    made = read = 0
    for i in range(first, first + period):
        taken = program.shapes[i]
        read += taken.count(result)
        made += (product_shape(trace, int(program.rows[i]), taken) or (taken[0] if taken else ())) == result
    return read >= made
