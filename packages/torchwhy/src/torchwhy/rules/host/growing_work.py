"""Work that grows from step to step, since all that came before is computed again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from torchwhy.finding import Evidence, Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import ForwardPass, forward_pass, work_of
from torchwhy.trace.derived.shapes import Shape, elements
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.meaning.arithmetic import LINEAR, SCANNING, TABLE_LOOKUP
from torchwhy.trace.meaning.frames import MODULE
from torchwhy.trace.meaning.operators import LEARNING
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import counted, percent

__all__ = ["growing_work"]


@dataclass
class _Growth:
    """Operators whose tensors grow by as much from each step to the next: their rows, and the sizes they begin and end
    with."""

    rows: list[int] = field(default_factory=list)
    first: int = 0
    last: int = 0
    by: int = 0


@rule("B42", "growing-work", source="sizes that grow by as much in each step", frees="device")
def growing_work(trace: Trace, *, steps: int = 3, share: float = 0.15) -> Iterator[Finding]:
    """Each step computes again what the steps before it computed.

    Sees: three steps or more in a row that call the same operators, whose tensors grow from each to the next by the
    same number. Either a table of words is looked up for one position more in each step, and the layers after it
    compute as many positions, without any backward pass; or, over five steps, sorts, sums and counts go over tensors
    that grow. They take 15% of the window or more.

    Costs: the n-th step computes n times as much, so all of them together grow with the square.

    Fix: for generation keep keys and values of attention (a key-value cache) and compute the new position alone. For
    statistics of all data so far, keep sums or counts that each step updates, or compute them once at the end.

    Known problems: attention over a cache grows, too, and is left out. Without known steps, the rule finds nothing.
    """
    program, window = trace.derived(forward_pass), trace.derived(steady_window)
    numbers = sorted(set(program.step.tolist()) - {-1})
    found = _grown(trace, program, numbers, steps)
    for prefix, one in found.items():
        rows = np.array(one.rows, np.int32)
        when = work_of(trace, rows)
        part = window.share(when)
        if not len(rows) or part < share or (not prefix and len(numbers) < max(5, steps)):
            continue
        if prefix and trace.events.any_of(LEARNING):
            continue
        saved = 1 - one.by / max((one.first + one.last) / 2, one.by)
        unit = counted(one.by, "position") if prefix else counted(one.by, "element")
        yield Finding(
            title=f"Each step computes {unit} more than the last, {one.last:,} in the end: {percent(part)} of the time",
            confidence="high" if len(numbers) >= 5 else "medium",
            time_us=when.total / 1000 * saved,
            stretches=when,
            window=window,
            evidence=(*_model_call(trace, int(rows[0])), *evidence(trace, rows)),
            cause=f"The model runs over the whole prefix for each new word, in {counted(len(numbers), 'step')}: all "
            "positions but the last were computed before."
            if prefix
            else "Each step reads all data so far, as the steps before it did.",
            fix="Keep the keys and values of attention (a key-value cache, past_key_values) and compute the new "
            "position alone."
            if prefix
            else "Keep sums or counts that each step updates, or compute it once, after the last step.",
        )


def _model_call(trace: Trace, row: int) -> tuple[Evidence, ...]:
    """The outermost module around an operator, with the stack of its call; nothing without recorded stacks."""
    stack = trace.stack(row)
    modules = [place for place, frame in enumerate(stack) if MODULE.names(frame)]
    if not modules:
        return ()
    return (Evidence(stack[modules[-1]], stack=tuple(stack[modules[-1] + 1 :]), note="calls it"),)


def _grown(trace: Trace, program: ForwardPass, numbers: list[int], steps: int) -> dict[bool, _Growth]:
    """What grows: layers that compute a growing prefix (True), and what goes over growing data (False)."""
    found = {True: _Growth(), False: _Growth()}
    events = trace.events
    order = np.argsort(program.step, kind="stable")
    counts = np.bincount(program.step[program.step >= 0])
    if len(numbers) < steps or (counts[numbers] != counts[numbers[0]]).any():
        return found
    places = order[len(order) - counts.sum() :].reshape(len(numbers), -1)  # one row for each step
    names = events.name[program.rows[places]]
    if (names != names[0]).any():
        return found
    first = program.rows[places[0]]
    tables, layers, scans = (events.are(meaning, first) for meaning in (TABLE_LOOKUP, LINEAR, SCANNING))
    by = 0
    for k in np.flatnonzero(tables).tolist():
        sizes = [_second(program.shapes[int(mine[k])]) for mine in places]
        if (step := _increment(sizes)) == 1:
            by = step
            found[True].first, found[True].last, found[True].by = sizes[0][-1], sizes[-1][-1], step
    for k in range(len(first)):
        taken = [program.shapes[int(mine[k])] for mine in places]
        if not all(taken):
            continue
        step = _increment([one[0] for one in taken])
        if by and layers[k] and step == by:
            found[True].rows += [int(program.rows[mine[k]]) for mine in places]
        if scans[k] and step:
            amounts = [elements(one[0]) for one in taken]
            growth = found[False]
            growth.rows += [int(program.rows[mine[k]]) for mine in places]
            growth.first, growth.last, growth.by = amounts[0], amounts[-1], amounts[1] - amounts[0]
    return found


def _second(taken: list[Shape]) -> Shape:
    return taken[1] if len(taken) > 1 else ()


def _increment(sizes: list[Shape]) -> int:
    """By how much one dimension grows from each to the next; 0 where it doesn't, or others change."""
    if len({len(one) for one in sizes}) != 1 or not sizes[0]:
        return 0
    table = np.array(sizes, np.int64)
    changes = np.diff(table, axis=0)
    grows = np.flatnonzero((changes != 0).any(axis=0))
    if len(grows) != 1 or (changes[:, grows[0]] != changes[0, grows[0]]).any():
        return 0
    return max(int(changes[0, grows[0]]), 0)
