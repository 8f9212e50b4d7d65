"""Optimizers whose parameters lie in groups of one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.host_activity import outer_operators
from torchwhy.trace.derived.shapes import tensor_lists
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.file.columns import Int32
from torchwhy.trace.meaning.annotations import OPTIMIZER_STEP
from torchwhy.trace.meaning.operators import FOREACH_OR_FUSED, short_operator
from torchwhy.trace.model.trace import Trace
from torchwhy.trace.tables.grouping import Groups

__all__ = ["parameter_groups"]

MERGED: Final = 2
"""Groups that remain: with and without weight decay, in most programs."""

NEARLY_ALL: Final = 0.9


@rule("B49", "parameter-groups", source="lengths of the lists of fused and foreach operators", frees="host")
def parameter_groups(trace: Trace, *, groups: int = 16, share: float = 0.05) -> Iterator[Finding]:
    """The optimizer has a group for each parameter.

    Sees: within one `Optimizer.step#`, 16 calls or more of one operator that takes lists of tensors (`_fused_adamw_`,
    `_foreach_addcdiv_`), nine of ten of them with lists of one tensor. The steps of such optimizers take 5% of the
    window or more.

    Costs: each group is updated by itself, with its own calls and the Python code around them. One group, with the same
    number of parameters, takes one call of each operator. At stake is the optimizer's time for all groups but two.

    Fix: one group for all parameters with the same options, often two: with and without weight decay.

    Known problems: groups may differ in their learning rates, as in layer-wise decay; those that are equal can still be
    one. The schedulers' loops over the groups aren't part of the time at stake.
    """
    events, window = trace.events, trace.derived(steady_window)
    steps = trace.calls.outermost_of_name(events.of(OPTIMIZER_STEP))
    steps = steps[trace.in_steps(steps) & events.begin_in(steps, window.start, window.end)]
    rows = trace.derived(outer_operators)
    rows = rows[events.are(FOREACH_OR_FUSED, rows) & (events.covered(rows, events.times_of(steps)) > 0)]
    if not len(steps) or len(rows) < groups * len(steps):
        return
    alike = Groups(events.name[rows], events.text_ids("Input Dims", rows))
    single = np.array([_of_one(trace, int(rows[place])) for place in alike.first], np.bool_)[alike.which]
    times = Groups(events.name[rows])
    sure = [i for i in range(len(times)) if single[times.which == i].mean() >= NEARLY_ALL]
    often = {i: float((times.which == i).sum()) / len(steps) for i in sure}
    # Of the operators of a group, the rarest one is called once for it.
    count = min((each for each in often.values() if each >= groups), default=0.0)
    spent = events.times_of(steps).clip(window.start, window.end)
    if not count or window.share(spent) < share:
        return
    chosen: Int32 = rows[np.isin(times.which, sure)]
    name = trace.name(int(steps[0])).partition("#")[2].partition(".")[0] or "The optimizer"
    longest = trace.name(int(chosen[np.argmax(events.dur[chosen])]))
    yield Finding(
        title=f"{name} updates {count:,.0f} groups of one parameter each, one after another",
        confidence="high",
        time_us=spent.total / 1000 * (1 - MERGED / count),
        stretches=spent,
        window=window,
        evidence=(*evidence(trace, steps, note="on the host"), *evidence(trace, chosen, limit=2)),
        cause=f"{short_operator(longest).lstrip('_')} takes a list of tensors, and is called for lists of one tensor: "
        "each parameter is a group of the optimizer.",
        fix="Put all parameters with the same options into one group. Often two are enough: "
        f'{name}([{{"params": [p for p in model.parameters() if p.ndim > 1], "weight_decay": 0.1}}, {{"params": '
        '[p for p in model.parameters() if p.ndim <= 1], "weight_decay": 0.0}]).',
        linked=True,
    )


def _of_one(trace: Trace, row: int) -> bool:
    """Whether the lists that an operator takes have one tensor each."""
    lists = tensor_lists(trace, row)
    return bool(lists) and max(map(len, lists)) == 1
