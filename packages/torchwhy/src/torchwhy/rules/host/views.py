"""Calls that only make views."""

from __future__ import annotations

from collections.abc import Iterator

from torchwhy.finding import Finding
from torchwhy.rules.evidence import evidence
from torchwhy.rules.host.bound import overhead_bound
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.steady_state import steady_window
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.meaning.operators import VIEW
from torchwhy.trace.model.trace import Trace
from torchwhy.wording import percent

__all__ = ["view_dispatch"]


@rule(
    "B19",
    "view-dispatch",
    source="operators without kernels, in an overhead-bound program",
    needs=("gpu", "idle", "order"),
    frees="host",
)
def view_dispatch(trace: Trace, *, share: float = 0.3) -> Iterator[Finding]:
    """Much of the host's time goes to calls that only make views.

    Sees: transpose, view, expand, select and similar operators with 30% or more of the operators' own time on the host,
    in a program that waits for its launches (overhead-bound).

    Costs: a view computes nothing, but its dispatch costs the host a few microseconds, and here the host is the limit.

    Fix: `torch.compile` removes them; else make the layout once (store the weight transposed, keep tensors contiguous)
    and take views out of the loop.

    Known problems: `reshape`, `flatten` and `contiguous` count as views, though they copy where the layout asks for it.
    """
    rows = trace.events.rows(Kind.OPERATOR)
    window = trace.derived(steady_window)
    rows = rows[trace.in_steps(rows) & (trace.events.ts[rows] >= window.start)]
    if not len(rows) or not list(overhead_bound.check(trace)):
        return
    own = trace.calls.self_time[rows]
    views = trace.events.are(VIEW, rows)
    spent, total = int(own[views].sum()), int(own.sum())
    if not total or spent < share * total:
        return
    chosen, times = rows[views], own[views]
    yield Finding(
        title=f"{percent(spent / total)} of the operators' own time on the host goes to views, which compute nothing",
        confidence="medium",
        time_us=spent / 1000,
        stretches=trace.events.times_of(chosen).clip(window.start, window.end),
        window=window,
        evidence=evidence(trace, chosen, times=times),
        cause="Shapes and layouts are changed around every operator, and the host limits the program.",
        fix="torch.compile removes views; without it, bring tensors into the needed layout once, outside the loop.",
    )
